/**
 * A set of namespaces (network, mount, PID, host name) with a holder as its process 1. The holder lives as long as its standard input
 * is open: when the owner closes it, or dies, the holder ends and the kernel kills all that runs inside.
 *
 * @module
 */
import { Process, sendSignal } from './process.ts';

const UNSHARE = ['unshare', '--net', '--mount', '--uts', '--pid', '--fork', '--kill-child'];

/** What a holder needs to start. */
export interface NamespaceOptions {
  /** Its name in messages. */
  readonly label: string;
  /** A shell script that prepares the namespaces, prints `ready PID` and holds until end of file. */
  readonly script: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The namespaces to start it from, which take it down with them; without, the owner's own. */
  readonly parent?: Namespace;
  /** True to make a user namespace too, for an owner that isn't root. */
  readonly userNamespace?: boolean;
}

/** Running namespaces, and the command to enter them. */
export class Namespace {
  /** The holder's process id as the owner sees it. */
  readonly pid: number;
  readonly userNamespace: boolean;
  readonly #holder: Process;

  private constructor(holder: Process, pid: number, userNamespace: boolean) {
    this.#holder = holder;
    this.pid = pid;
    this.userNamespace = userNamespace;
  }

  /** Starts a holder and waits until its script has prepared everything. */
  static async start(options: NamespaceOptions): Promise<Namespace> {
    const { parent, label, script, args, env } = options;
    const userNamespace = parent?.userNamespace ?? options.userNamespace ?? false;
    const unshare = userNamespace && parent === undefined ? [...UNSHARE, '--user', '--map-root-user'] : UNSHARE;
    const argv = [...unshare, 'sh', '-c', script, 'lab-holder', ...args];
    const holder = new Process(parent === undefined ? argv : parent.enter(argv), { env, label, holdInput: true });
    try {
      const [, pid] = await holder.waitForLine(/^ready (\d+)$/);
      return new Namespace(holder.unref(), Number(pid), userNamespace);
    } catch (error) {
      holder.signal('SIGKILL');
      throw error;
    }
  }

  /** The command that runs `argv` inside. */
  enter(argv: readonly string[]): string[] {
    const user = this.userNamespace ? ['--user', '--preserve-credentials'] : [];
    return ['nsenter', `--target=${this.pid}`, ...user, '--net', '--mount', '--uts', '--pid', '--', ...argv];
  }

  /** Ends the holder, and so everything inside. */
  async stop(): Promise<void> {
    this.#holder.closeInput();
    // Killing process 1 takes the rest with it; the processes around it then end by themselves.
    const timer = setTimeout(() => sendSignal(this.pid, 'SIGKILL'), 5000);
    await this.#holder.exited;
    clearTimeout(timer);
  }
}
