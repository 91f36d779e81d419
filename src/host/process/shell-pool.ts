import { Secret } from '../../core/crypto/secret.ts';
import { type AnonymousFile, openAnonymousFile, writeAnonymousFile } from './anonymous-file.ts';
import { splitLines } from './lines.ts';
import { maxOutput } from './run-options.ts';

/** A shell that was started: what goes in and comes out, and how it is ended with all that it runs. */
export interface Shell {
  write(text: string): void;
  onData(listen: (piece: string) => void): void;
  readonly ended: Promise<unknown>;
  kill(): void;
}

/** Starts `sh -c SCRIPT`, with these files as descriptors 3 and on. */
export type StartShell = (script: string, files: readonly AnonymousFile[]) => Promise<Shell>;

/**
 * Reads how many words a command has and how much it may print, and each word in a line: they are data, of which the shell parses none. Opening the files again sets
 * the tool's offsets to 0; PWD would be the shell's own. A tool that prints more ends by SIGXFSZ (ulimit(1p): in 512 bytes).
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

/** A command that only observes starts so many tools: it needs no shell. */
const runsWithout = 2;
/** Tools that run at the same time; any other one needs no shell. */
const mostShells = 4;
/** Characters: a shell reads them one by one. */
const longestCommand = 4096;

/**
 * Shells that start tools, one at a time each. Starting a process takes Node 2 to 10 ms, more the larger Node is, because the kernel copies its
 * page tables (fork(2)); a shell of 1 MB takes a fraction of one. They end with this process.
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
   * What `work` makes of a shell that nothing else uses meanwhile. Null where there is none for this command, whose path comes first.
   *
   * @param isBounded whether the first tools need a shell too: without one nothing ends a tool that prints too much
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

/** How a tool ended in a shell: the exit code, null after its deadline, and what it printed. */
export interface ToolResult {
  readonly exitCode: number | null;
  readonly stdout: AnonymousFile;
  readonly stderr: AnonymousFile;
}

/** How a run ended: with the shell's line, or why there is none. */
type ShellOutcome = { readonly said: number } | 'overdue' | 'gone';

export class StandingShell {
  readonly #shell: Shell;
  readonly #files: readonly [AnonymousFile, AnonymousFile, AnonymousFile];
  /** What the file of the tool's input holds; null after a write that failed. */
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
   * Runs a command, whose path comes first. Null where the shell ended meanwhile: whether the command ran is unknown then.
   *
   * @throws DiskFailed where there is no room for the input; the command does not run
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
