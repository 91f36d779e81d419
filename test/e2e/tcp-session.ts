import type { Host } from '../lab/host.ts';
import type { Outcome, Process } from '../lab/process.ts';

const port = 8090;

const server = `
require('net').createServer((socket) => {
  socket.on('error', (error) => console.log(error.code));
  socket.pipe(socket);
}).listen(${port}, '0.0.0.0', () => console.log('listening'));
`;

/** Sends a number every 50 ms; prints each that comes back, with its time in milliseconds. */
const client = `
const socket = require('net').connect(${port}, process.argv[1], () => {
  socket.setNoDelay(true);
  let next = 0;
  setInterval(() => socket.write(++next + '\\n'), 50);
});
let rest = '';
socket.on('data', (data) => {
  const lines = (rest + data).split('\\n');
  rest = lines.pop();
  for (const line of lines) console.log(line, Math.round(performance.now()));
});
socket.on('close', (failed) => { console.log('closed'); process.exit(failed ? 1 : 0); });
socket.on('error', (error) => console.log(error.code));
`;

/** A TCP session that sends and receives until it is stopped. */
export class TcpSession {
  readonly #process: Process;

  constructor(process: Process) {
    this.#process = process;
  }

  /** The output that is no data: an error, or the end of the session. */
  get trouble(): string[] {
    return this.#lines().filter((line) => !/^\d+ \d+$/.test(line));
  }

  /** How many numbers came back, in order and without a gap. */
  get received(): number {
    const numbers = this.#lines().flatMap((line) => /^(\d+) \d+$/.exec(line)?.[1] ?? []);
    return numbers.every((each, index) => Number(each) === index + 1) ? numbers.length : 0;
  }

  /** The longest time without data, in seconds. */
  get longestPause(): number {
    const times = this.#lines().flatMap((line) => Number(/^\d+ (\d+)$/.exec(line)?.[1] ?? []));
    return Math.max(0, ...times.slice(1).map((time, index) => (time - (times[index] as number)) / 1000));
  }

  stop(): Promise<Outcome> {
    return this.#process.stop();
  }

  #lines(): string[] {
    return this.#process.output.stdout.split('\n').slice(0, -1);
  }
}

/** Opens a session from one host to an address of another. */
export async function startSession(from: Host, to: Host, address: string): Promise<TcpSession> {
  await to.spawn(['node', '-e', server], { holdInput: true }).waitForLine(/listening/);
  const process = from.spawn(['node', '-e', client, address], { holdInput: true });
  await process.waitForLine(/^1 \d+$/, 30_000);
  return new TcpSession(process);
}
