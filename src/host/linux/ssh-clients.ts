import { endianness } from 'node:os';
import type { SshClient } from '../../core/host-state/actual.ts';
import { type Address, addressAt } from '../../core/net/cidr.ts';
import { readAddress, readSshConnection } from '../read-address.ts';
import { readSshSockets } from './ssh-sockets.ts';
import { readIfThere } from './underlay.ts';

/**
 * A line of /proc/net/tcp or tcp6 in state TCP_ESTABLISHED (include/net/tcp_states.h): local address and port, remote address, and the
 * inode where it is there. Other lines must be cheap to skip: a busy host has thousands.
 */
const established =
  /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} 01(?: [0-9A-F:]+ [0-9A-F:]+ [0-9A-F]+ +\d+ +\d+ (\d+))?(?: |$)/gm;

/** A line in state TCP_LISTEN: the local port. */
const listening = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A(?: |$)/gm;

/** The prefix of an IPv4 address in an IPv6 socket. */
const mapped = '00000000000000000000FFFF';

/** Reads the SSH sessions to this host. A machine with much memory has large tables: it takes the kernel milliseconds to print them. */
export async function readSshClients(sshConnection: string | undefined): Promise<SshClient[]> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map(readIfThere).join('\n');
  // To look at all processes takes as long again.
  const sockets = isConnectedElsewhere(tables) ? readSshSockets() : none;
  return parseSshClients(tables, sshConnection, { sockets });
}

const none: ReadonlySet<string> = new Set();

const sshPort = 22;

/** True where a client is connected to another port than that of SSH: there may be an SSH server. */
function isConnectedElsewhere(tables: string): boolean {
  const ports = new Set([...tables.matchAll(listening)].map(([, port = '']) => Number.parseInt(port, 16)));
  ports.delete(sshPort);
  return (
    ports.size > 0 && [...tables.matchAll(established)].some(([, , port = '']) => ports.has(Number.parseInt(port, 16)))
  );
}

export interface SshOptions {
  /** The inodes of the sockets of SSH servers. */
  readonly sockets?: ReadonlySet<string>;
  readonly order?: 'LE' | 'BE';
}

/**
 * Finds the SSH sessions to this host: the established connections of SSH servers, to port 22, or to the port of our own session, in
 * /proc/net/tcp and tcp6 (proc_pid_net(5)), and the session named by SSH_CONNECTION (ssh(1)).
 */
export function parseSshClients(
  tables: string,
  sshConnection = '',
  { sockets = none, order = endianness() }: SshOptions = {},
): SshClient[] {
  const [, , , port = String(sshPort)] = sshConnection.split(' ');
  const ports = new Set([sshPort, Number(port)]);
  const found = [...tables.matchAll(established)]
    .filter(([, , local = '', , inode = '']) => sockets.has(inode) || ports.has(Number.parseInt(local, 16)))
    .flatMap(([, local = '', , remote = '']): SshClient[] => {
      const address = readHex(remote, order);
      return address === null ? [] : [{ address, local: readHex(local, order) }];
    });
  const sessions = [...found, ...readSshConnection(sshConnection)];
  return [...new Map(sessions.map((each) => [`${each.address} ${each.local}`, each])).values()];
}

/** Addresses are printed as 32-bit words in host byte order. */
function readHex(text: string, order: 'LE' | 'BE'): Address | null {
  if (!/^([0-9A-F]{8}|[0-9A-F]{32})$/.test(text)) return null;
  const words = text.match(/.{8}/g) ?? [];
  const hex = words.map((word) => (order === 'BE' ? word : (word.match(/../g) ?? []).reverse().join(''))).join('');
  const four = hex.length === 8 ? hex : hex.startsWith(mapped) ? hex.slice(24) : null;
  return four === null ? readAddress((hex.match(/.{4}/g) ?? []).join(':')) : addressAt(BigInt(`0x${four}`));
}
