/**
 * `wg` itself, as a parser to compare with. It configures an interface that is only a socket, as that of a userspace
 * implementation is, and the test reads there what `wg` understood. It runs in namespaces without a network.
 *
 * @module
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findTool } from '../../src/host/process/find-tool.ts';
import { LineServer } from './line-server.ts';

/** A word of the protocol and its value, in the order in which `wg` sent them (www.wireguard.com/xplatform). */
export type WgSettings = readonly (readonly [string, string])[];

/** The arguments are `wg`, our folder of sockets, and the file. */
const script = `set -e
mount -t tmpfs none /run
mkdir -p /run/wireguard /var/run/wireguard
mount --bind "$2" /run/wireguard
while read -r _; do
  if "$1" setconf fuzz0 "$3" >&2; then echo 0; else echo 1; fi
done
`;

export class WgOracle {
  readonly #program: LineServer;
  readonly #server: Server;
  readonly #folder: string;
  #sent = '';

  private constructor(program: LineServer, server: Server, folder: string) {
    this.#program = program;
    this.#server = server;
    this.#folder = folder;
    server.on('connection', (socket) => {
      this.#sent = '';
      socket.on('error', () => {});
      socket.setEncoding('latin1').on('data', (text: string) => {
        this.#sent += text;
        if (this.#sent.endsWith('\n\n')) socket.write('errno=0\n\n');
      });
    });
  }

  static async start(): Promise<WgOracle> {
    const folder = await mkdtemp(join(tmpdir(), 'cpn-fuzz-'));
    const sockets = join(folder, 'sockets');
    await mkdir(sockets);
    const server = createServer();
    await new Promise<void>((done) => server.listen(join(sockets, 'fuzz0.sock'), done));
    const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
    const bash = [
      'bash',
      '--noprofile',
      '--norc',
      '-c',
      script,
      'wg-oracle',
      await findTool('wg'),
      sockets,
      pathIn(folder),
    ];
    const program = new LineServer(['unshare', ...user, '--mount', '--net', '--', ...bash], {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      LC_ALL: 'C',
    });
    return new WgOracle(program, server, folder);
  }

  /** What `wg setconf` sends to the interface, or null where it refuses the file. One character stands for a byte. */
  async understand(text: string): Promise<WgSettings | null> {
    await writeFile(pathIn(this.#folder), text, 'latin1');
    this.#sent = '';
    if ((await this.#program.request('go')) !== '0') return null;
    const [first, ...rest] = this.#sent.trimEnd().split('\n');
    if (first !== 'set=1') throw new Error(`wg sent ${JSON.stringify(first)} in place of a configuration`);
    return rest.map((line): [string, string] => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    });
  }

  async stop(): Promise<void> {
    await this.#program.close();
    await new Promise((done) => this.#server.close(done));
    await rm(this.#folder, { recursive: true });
  }
}

function pathIn(folder: string): string {
  return join(folder, 'fuzz0.conf');
}
