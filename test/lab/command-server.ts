import { join } from 'node:path';
import type { Outcome, Process } from './process.ts';
import { ProcessError } from './process.ts';

/** The program that {@link CommandServer} starts on a host. */
export const COMMAND_SERVER = join(import.meta.dirname, 'command-server.cjs');

/** Less garbage collection: what a lab's hosts hold is small, and none of them lives long. */
const FLAGS = ['--no-memory-reducer', '--min-semi-space-size=8'];

/** A command for a server. */
export interface ServedCommand {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly input: string;
}

/** How a command ended, and its peak of memory. */
export interface ServedOutcome extends Outcome {
  readonly peakKiB: number;
}

/**
 * Runs commands of the built program on a host, all in one process: the start of Node costs more than most commands do. It runs one
 * command at a time.
 */
export class CommandServer {
  readonly #process: Process;
  #isBusy = false;

  /** @param spawn starts a program on the host, with a standard input that stays open */
  constructor(spawn: (argv: readonly string[]) => Process) {
    this.#process = spawn(['node', ...FLAGS, COMMAND_SERVER]).unref();
  }

  /** True while a command runs. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** The server's process id as the owner sees it; undefined once it is gone. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Ends the server, and with it what its commands left running. */
  async stop(): Promise<void> {
    this.#process.closeInput();
    await this.#process.endWithin(5000);
  }

  /** Runs a command to its end. @throws ProcessError after `timeoutMs`, which ends the server too */
  async run(command: ServedCommand, label: string, timeoutMs: number): Promise<ServedOutcome> {
    this.#isBusy = true;
    try {
      this.#process.writeInput(`${toLine(command)}\n`);
      const [, answer = ''] = await this.#process.waitForLine(/^answer (.*)$/s, timeoutMs);
      return { ...JSON.parse(answer), signal: null };
    } catch (error) {
      this.#process.signal('SIGKILL');
      throw new ProcessError(`${label}: ${(error as Error).message}`, await this.#process.exited);
    } finally {
      this.#isBusy = false;
    }
  }
}

/** JSON in ASCII: Node's reader of lines ends a line at U+2028 too. */
function toLine(command: ServedCommand): string {
  return JSON.stringify(command).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
