/**
 * Sends numbered lines into a session that echoes them, and checks that every line returns once and in order:
 * `node echo-client.ts tcp ADDRESS PORT` or `node echo-client.ts command ARGV…`.
 *
 * Prints the first line of the session as `seen TEXT`, and each echo as `echo NUMBER GAP`: the milliseconds since the echo before. At
 * the end of its standard input it sends no more, and prints `complete NUMBER` once every line has returned. A session that ends
 * earlier prints `lost REASON`.
 *
 * @module
 */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

const everyMs = 50;

interface Session {
  readonly toServer: Writable;
  readonly fromServer: Readable;
}

const [kind, ...rest] = process.argv.slice(2);
const { toServer, fromServer } = kind === 'tcp' ? connectTo(rest) : start(rest);
for (const stream of [toServer, fromServer]) stream.on('error', (error) => end(`lost ${codeOf(error)}`, 1));

let sent = 0;
let received = 0;
let isEnding = false;
let last = 0;
let timer: NodeJS.Timeout | undefined;

createInterface({ input: fromServer }).on('line', readLine).on('close', finish);
process.stdin.resume().on('end', () => {
  isEnding = true;
  clearInterval(timer);
  toServer.end();
});

function readLine(line: string): void {
  if (timer === undefined) {
    print(`seen ${line}`);
    last = performance.now();
    timer = setInterval(() => toServer.write(`${++sent}\n`), everyMs);
    return;
  }
  received += 1;
  if (line !== `${received}`) end(`lost order: ${line} instead of ${received}`, 1);
  const now = performance.now();
  print(`echo ${received} ${Math.round(now - last)}`);
  last = now;
}

function finish(): void {
  if (isEnding && received === sent) end(`complete ${received}`, 0);
  end(`lost end after ${received} of ${sent} lines`, 1);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function end(text: string, exitCode: number): never {
  print(text);
  process.exit(exitCode);
}

function connectTo([address = '', port = '']: string[]): Session {
  const socket = connect({ host: address, port: Number(port), noDelay: true, allowHalfOpen: true });
  return { toServer: socket, fromServer: socket };
}

function start([file = '', ...args]: string[]): Session {
  const { stdin, stdout } = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  return { toServer: stdin, fromServer: stdout };
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : error.message;
}
