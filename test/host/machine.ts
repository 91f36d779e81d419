import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { promisify } from 'node:util';
import type { Facts } from '../../src/core/errors/index.ts';
import type { Host } from '../../src/host/host.ts';
import { Namespace } from '../lab/namespace.ts';
import { Process } from '../lab/process.ts';
import { labPath, labSupport } from '../lab/support.ts';
import { readJson, writeJson } from './json-with-secrets.ts';

export interface Request {
  readonly call: keyof Host;
  readonly args: readonly unknown[];
}

export interface Reply {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly facts: Facts; readonly cause?: string };
  /** The commands that the call started. */
  readonly spawned: readonly string[];
}

/** An error of the driver. */
class RemoteError extends Error {
  override readonly name: string;
  readonly facts: Facts;

  constructor({ name, message, facts, cause }: NonNullable<Reply['error']>) {
    super(message, { cause });
    this.name = name;
    this.facts = facts;
  }
}

/** The first process prepares the namespaces, reaps orphans, and ends with its input. */
const holder = `
set -e
read -r pid _ </proc/self/stat
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir /run/wireguard
ip link set lo up
echo "ready $pid"
exec env --ignore-signal=CHLD cat >/dev/null
`;

/** A host in its own namespaces. `await using machine = await Machine.start()` removes it. */
export class Machine {
  readonly #namespace: Namespace;
  readonly #prefix: readonly string[];
  #driver: ChildProcessWithoutNullStreams;
  #replies: Interface;
  /** The commands that the last call started. */
  spawned: readonly string[] = [];
  /** The host inside, called through its driver. */
  readonly host: Required<Host> = new Proxy({} as Required<Host>, {
    get: (_, call) =>
      call === 'then' ? undefined : (...args: unknown[]) => this.#call({ call: call as keyof Host, args }),
  });

  private constructor(namespace: Namespace, prefix: readonly string[]) {
    this.#namespace = namespace;
    this.#prefix = prefix;
    [this.#driver, this.#replies] = this.#startDriver();
  }

  /** @param prefix what the driver is started with, such as `setpriv` */
  static async start(...prefix: string[]): Promise<Machine> {
    const support = labSupport();
    if (!support.possible) throw new Error(`no simulated host on this machine: ${support.needs}`);
    const userNamespace = support.how === 'user namespace';
    const env = { PATH: labPath() };
    return new Machine(
      await Namespace.start({ label: 'machine', script: holder, args: [], env, userNamespace }),
      prefix,
    );
  }

  /**
   * With the driver wg-quick or linux.
   *
   * @param platform the platform that the driver assumes; wg-quick is still that of Linux
   */
  static startWith(driver: 'linux' | 'wg-quick', platform: NodeJS.Platform = 'linux'): Promise<Machine> {
    return Machine.start('env', `CPN_HOST_DRIVER=${driver}`, `PLATFORM=${platform}`);
  }

  /** Runs a shell script inside and returns what it printed. */
  async sh(script: string): Promise<string> {
    const [file = '', ...args] = this.#namespace.enter(['sh', '-ec', script]);
    const { stdout } = await promisify(execFile)(file, args, { timeout: 20_000, env: { PATH: labPath() } });
    return stdout;
  }

  /** Starts a program of Node's inside, which reads until `closeInput`. */
  start(script: string, ...args: string[]): Process {
    const argv = this.#namespace.enter([process.execPath, script, ...args]);
    return new Process(argv, { wrapped: true, holdInput: true, env: { PATH: labPath() }, label: script });
  }

  /** Ctrl-C at the driver's terminal: the signal goes to its whole process group. Then a new driver takes its place. */
  async interrupt(): Promise<void> {
    const { pid } = this.#driver;
    const ended = new Promise((done) => this.#driver.once('close', done));
    if (pid !== undefined) process.kill(-pid, 'SIGINT');
    await ended;
    [this.#driver, this.#replies] = this.#startDriver();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#driver.stdin.end();
    await this.#namespace.stop();
  }

  #startDriver(): [ChildProcessWithoutNullStreams, Interface] {
    const argv = [...this.#prefix, process.execPath, join(import.meta.dirname, 'driver.ts')];
    const [file = '', ...args] = this.#namespace.enter(argv);
    const driver = spawn(file, args, { detached: true, env: { PATH: labPath(), CANARY: 'of-the-caller' } });
    driver.stderr.pipe(process.stderr);
    driver.stdin.on('error', () => {});
    return [driver, createInterface({ input: driver.stdout })];
  }

  async #call(request: Request): Promise<unknown> {
    const ended = new AbortController();
    const { signal } = ended;
    const reply = Promise.race([
      once(this.#replies, 'line', { signal }),
      once(this.#replies, 'close', { signal }).then(() => {
        throw new Error('the driver ended');
      }),
    ]).finally(() => ended.abort());
    this.#driver.stdin.write(`${writeJson(request)}\n`);
    const [line] = await reply;
    const { value, error, spawned } = readJson(line) as Reply;
    this.spawned = spawned;
    if (error) throw new RemoteError(error);
    return value;
  }
}
