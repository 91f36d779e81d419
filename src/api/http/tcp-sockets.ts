import { closeSync, openSync, readSync } from 'node:fs';
import { parseTcpSockets, type TcpSocket } from '../../core/net/loopback-listener.ts';

const tables = ['/proc/net/tcp', '/proc/net/tcp6'];

/** A row in a state other than TCP_LISTEN (0A). The kernel prints listening sockets first. */
const otherRow = /^ *\d+: [0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:[0-9A-F]{4} (?!0A)[0-9A-F]{2} /m;

/** Reads this network namespace's listening sockets, and skips the thousands of others. */
export function readListeningSockets(): TcpSocket[] {
  return readSockets((text) => otherRow.test(text)).filter(({ isListening }) => isListening);
}

/** Reads all TCP sockets of this network namespace; empty without /proc. */
export function readSockets(isEnough: (text: string) => boolean = () => false): TcpSocket[] {
  return tables.flatMap((path) => parseTcpSockets(readTable(path, isEnough)));
}

function readTable(path: string, isEnough: (text: string) => boolean): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const chunk = Buffer.alloc(65_536);
    let text = '';
    for (;;) {
      const size = readSync(file, chunk);
      const read = chunk.toString('latin1', 0, size);
      text += read;
      if (size === 0 || isEnough(read)) return text;
    }
  } finally {
    closeSync(file);
  }
}
