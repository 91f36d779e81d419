import { Secret } from '../../core/crypto/secret.ts';
import { type AnonymousFile, openAnonymousFile, writeAnonymousFile } from './anonymous-file.ts';
import { maxOutput } from './run-options.ts';

/** A running shell. `kill` ends it with everything that it runs. */
export interface Shell {
  write(text: string): void;
  onData(listen: (piece: string) => void): void;
  readonly ended: Promise<unknown>;
  kill(): void;
}

/** Starts `sh -c SCRIPT`, with these files as descriptors from 3 upwards. */
export type StartShell = (script: string, files: readonly AnonymousFile[]) => Promise<Shell>;

/**
 * Reads the number of words, the output limit, and then one word per line: data that the shell does
 * not parse. Reopened files have offset 0. PWD is unset, because it would be the shell's own.
 * Beyond its limit a tool ends with SIGXFSZ (ulimit(1p), in units of 512 bytes).
 */
const loop = `unset PWD
ulimit -f ${maxOutput / 512}
while read -r count blocks; do
  ulimit -S -f "$blocks"
  set --
  while [ "$count" -gt 0 ]; do
    IFS= read -r word
    set -- "$@" "$word"
    count=$((count - 1))
  done
  "$@" </proc/self/fd/3 >/proc/self/fd/4 2>/proc/self/fd/5 3<&- 4<&- 5<&-
  echo "$?"
done`;

/** The first tools run without a shell. A command that only observes starts no more. */
const runsWithout = 2;
/** The maximum number of tools in shells at the same time. Further tools run without a shell. */
const mostShells = 4;
/** Characters. Limited because a shell reads them one by one. */
const longestCommand = 4096;

/**
 * Shells that start tools, one at a time each, and end with this process. Node takes 2 to 10 ms to
 * start a process, and more as it grows, because the kernel copies its page tables (fork(2)). A
 * shell of 1 MB takes a fraction of a millisecond.
 */
export class ShellPool {
  readonly #start: StartShell;
  readonly #idle: StandingShell[] = [];
  #runs = 0;
  #open = 0;

  constructor(start: StartShell) {
    this.#start = start;
  }

  /**
   * Calls `work` with a shell that has no other user meanwhile, and returns its result. Null if no
   * shell can run this command, whose path comes first.
   *
   * @param isBounded true if even the first tools need a shell, because only a shell enforces the
   *   output limit
   */
  async use<T>(
    command: readonly string[],
    work: (shell: StandingShell) => Promise<T>,
    isBounded = false,
  ): Promise<T | null> {
    const isReadable = command.every((word) => !word.includes('\n'));
    if (!isReadable || command.reduce((length, word) => length + word.length, 0) > longestCommand) return null;
    const shell = await this.#take(isBounded);
    if (shell === null) return null;
    try {
      return await work(shell);
    } finally {
      if (!shell.isGone) this.#idle.push(shell);
      else this.#drop(shell);
    }
  }

  async #take(isBounded: boolean): Promise<StandingShell | null> {
    this.#runs += 1;
    for (let shell = this.#idle.pop(); shell !== undefined; shell = this.#idle.pop()) {
      if (!shell.isGone) return shell;
      this.#drop(shell);
    }
    if ((this.#runs <= runsWithout && !isBounded) || this.#open === mostShells) return null;
    this.#open += 1;
    try {
      return await StandingShell.open(this.#start);
    } catch {
      this.#open -= 1;
      return null;
    }
  }

  #drop(shell: StandingShell): void {
    shell.close();
    this.#open -= 1;
  }
}

/** The result of a tool in a shell. The exit code is null after the deadline. */
export interface ToolResult {
  readonly exitCode: number | null;
  readonly stdout: AnonymousFile;
  readonly stderr: AnonymousFile;
}

/** The end of a run: the line that the shell printed, or the reason why it printed none. */
type ShellOutcome = { readonly said: number } | 'overdue' | 'gone';

export class StandingShell {
  readonly #shell: Shell;
  readonly #files: readonly [AnonymousFile, AnonymousFile, AnonymousFile];
  /** The content of the input file. Null after a failed write. */
  #input: string | null = '';
  #isGone = false;
  #hear: (outcome: ShellOutcome) => void = () => {};

  static async open(start: StartShell): Promise<StandingShell> {
    const files = [openAnonymousFile(), openAnonymousFile(), openAnonymousFile()] as const;
    try {
      return new StandingShell(await start(loop, files), files);
    } catch (error) {
      for (const file of files) file.close();
      throw error;
    }
  }

  private constructor(shell: Shell, files: readonly [AnonymousFile, AnonymousFile, AnonymousFile]) {
    this.#shell = shell;
    this.#files = files;
    const listen = splitLines(16, (line) => this.#hear(line === null ? 'gone' : { said: Number(line) }));
    shell.onData(listen);
    shell.ended.then(() => this.#end('gone'));
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /**
   * Runs a command, whose path comes first. Null if the shell ended: the command may have run.
   *
   * @throws DiskFailed if the disk has no room for the input; the command does not run
   */
  async run(
    command: readonly string[],
    input: string | Secret,
    deadlineMs: number,
    maxBytes = maxOutput,
  ): Promise<ToolResult | null> {
    const [stdin, stdout, stderr] = this.#files;
    const text = input instanceof Secret ? input.reveal() : input;
    if (text !== this.#input) this.#write(stdin, text);
    const overdue = setTimeout(() => this.#end('overdue'), deadlineMs);
    const outcome = await new Promise<ShellOutcome>((resolve) => {
      this.#hear = resolve;
      this.#shell.write(`${command.length} ${Math.ceil(maxBytes / 512)}\n${command.join('\n')}\n`);
    });
    clearTimeout(overdue);
    if (input instanceof Secret) this.#write(stdin, '');
    if (outcome === 'gone') {
      this.#end('gone');
      return null;
    }
    return { exitCode: outcome === 'overdue' ? null : outcome.said, stdout, stderr };
  }

  close(): void {
    this.#end('gone');
    for (const file of this.#files) file.close();
  }

  #write(file: AnonymousFile, text: string): void {
    this.#input = null;
    writeAnonymousFile(file, text);
    this.#input = text;
  }

  #end(why: 'overdue' | 'gone'): void {
    this.#isGone = true;
    this.#shell.kill();
    this.#hear(why);
  }
}

/**
 * Splits text that arrives in pieces. Calls `onLine` with each line, without its newline. For a
 * line of more than `limit` characters, calls it with null and skips the rest.
 */
export function splitLines(limit: number, onLine: (line: string | null) => void): (piece: string) => void {
  let kept = '';
  let skipping = false;
  return (piece) => {
    const [first = '', ...others] = piece.split('\n');
    kept += first;
    for (const next of others) {
      if (!skipping) onLine(kept.length > limit ? null : kept);
      skipping = false;
      kept = next;
    }
    if (!skipping && kept.length > limit) {
      skipping = true;
      onLine(null);
    }
    if (skipping) kept = '';
  };
}
