import { join } from 'node:path';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { sshArgs, startSshd } from '../lab/ssh-server.ts';

/** The ports of the servers of {@link serveEchoes}. */
export const sessionPorts = [8081, 2222] as const;
const [tcpPort, sshPort] = sessionPorts;

/** The keys of the server and of its one client, made when the server starts. */
const keysOf = (server: Host) => join(server.folder, 'ssh-keys');

const echoServer = `
require('net').createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
  socket.on('error', () => {});
  socket.write(socket.remoteAddress + '\\n');
  socket.pipe(socket);
}).listen(${tcpPort}, '0.0.0.0', () => console.log('listening'));
`;

/** Starts a TCP server that echoes, and OpenSSH's server. */
export async function serveEchoes(host: Host): Promise<void> {
  await host.exec(['sh', '-ec', startSshd(keysOf(host), sshPort)]);
  await host.spawn(['node', '-e', echoServer], { holdInput: true }).waitForLine(/listening/);
}

/** A session of one TCP connection, which carries a numbered line every 50 ms to a server that echoes it. */
export class NumberedSession {
  readonly name: string;
  /** The client's address as the server sees it. */
  readonly seen: string;
  readonly #client: Process;

  private constructor(name: string, seen: string, client: Process) {
    this.name = name;
    this.seen = seen;
    this.#client = client;
  }

  /** Connects to a server of {@link serveEchoes}. */
  static tcp(from: Host, address: string): Promise<NumberedSession> {
    return NumberedSession.#start('tcp', from, ['tcp', address, `${tcpPort}`]);
  }

  /** Logs in on a server of {@link serveEchoes} by OpenSSH's client, whose keepalive messages are off. */
  static ssh(from: Host, to: Host, address: string): Promise<NumberedSession> {
    const command = 'echo $SSH_CONNECTION | cut -d" " -f1; exec cat';
    const argv = sshArgs(keysOf(to), '-p', `${sshPort}`, `root@${address}`, command);
    return NumberedSession.#start('ssh', from, ['command', ...argv]);
  }

  static async #start(name: string, from: Host, args: readonly string[]): Promise<NumberedSession> {
    const argv = ['node', join(import.meta.dirname, 'echo-client.ts'), ...args];
    const client = from.spawn(argv, { holdInput: true });
    const [, seen = ''] = await client.waitForLine(/^seen (.*)/);
    return new NumberedSession(name, seen, client);
  }

  /** Waits for echoes of lines that are sent from now on. */
  async goesOn(): Promise<void> {
    const goal = this.#echoes.length + 20;
    await eventually(`the ${this.name} session goes on`, () => {
      if (this.#client.pid === undefined) return true;
      return this.#echoes.length >= goal;
    });
    const [loss] = /^lost .*/m.exec(this.#client.output.stdout) ?? [];
    if (loss !== undefined || this.#client.pid === undefined) throw new Error(`the ${this.name} session: ${loss}`);
  }

  /** Waits until the session ends without its consent, and returns the reason. */
  async loss(): Promise<string> {
    await eventually(`the ${this.name} session ends`, () => this.#client.pid === undefined);
    return this.#client.output.stdout.trimEnd().split('\n').at(-1) ?? '';
  }

  /** The longest time between two echoes from the echo with this index on, in milliseconds. */
  longestGapSince(index: number): number {
    return Math.max(...this.#echoes.slice(index));
  }

  /** The number of echoes until now. */
  get count(): number {
    return this.#echoes.length;
  }

  /** Ends the session, and returns `complete` once every line that was sent has returned, in order; else the reason. */
  async end(): Promise<string> {
    this.#client.closeInput();
    const { stdout } = await this.#client.endWithin(10_000);
    const last = stdout.trimEnd().split('\n').at(-1) ?? '';
    return last.startsWith('complete ') ? 'complete' : last;
  }

  /** The milliseconds before each echo. */
  get #echoes(): number[] {
    return [...this.#client.output.stdout.matchAll(/^echo \d+ (\d+)$/gm)].map(([, gap]) => Number(gap));
  }
}
