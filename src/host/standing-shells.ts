import type { FileHandle } from 'node:fs/promises';
import { splitLines } from './lines.ts';
import { openNameless } from './nameless-file.ts';

/** A shell that was started: what goes in and comes out, and how it is ended with all that it runs. */
export interface Shell {
  write(text: string): void;
  onData(listen: (piece: string) => void): void;
  readonly ended: Promise<unknown>;
  kill(): void;
}

/** Starts `sh -c SCRIPT ARGUMENTS…`, with these files as descriptors 3 and on. */
export type StartShell = (script: string, args: readonly string[], files: readonly FileHandle[]) => Promise<Shell>;

/** How a tool ended that a standing shell ran; an exit code of null where its time was over. */
export interface Answer {
  readonly exitCode: number | null;
  readonly stdout: FileHandle;
  readonly stderr: FileHandle;
}

/** The command line is in the shell's arguments, so that it reads no word of it. Each time the tool gets its files from the beginning; PWD would be the shell's own. */
const loop = `unset PWD
while read -r _; do
  "$@" </proc/self/fd/3 >/proc/self/fd/4 2>/proc/self/fd/5 3<&- 4<&- 5<&-
  echo "$?"
done`;

/** A command line of a person's looks at most twice: before its changes and after them. */
const timesWithout = 2;
const mostShells = 16;

/**
 * Shells that stand by for commands that are given again and again: whoever is asked every few seconds what there is. To start a process
 * costs Node 3 to 10 ms, the more the larger it is, because the kernel copies its page tables (fork(2)), and a shell of 1 MB a
 * fraction of one. They end when we do.
 */
export class StandingShells {
  readonly #start: StartShell;
  /** By command; or how often it was given. */
  readonly #shells = new Map<string, Promise<StandingShell> | number>();

  constructor(start: StartShell) {
    this.#start = start;
  }

  /**
   * Has a shell run a command, whose path comes first, and gives what `read` makes of its answer; null where no shell stands by: the
   * first two times, so that what is asked once costs no shell, and where it is gone.
   */
  async ask<T>(
    command: readonly string[],
    input: string,
    deadlineMs: number,
    read: (answer: Answer) => Promise<T>,
  ): Promise<T | null> {
    const key = [...command, input].join('\0');
    const known = this.#shells.get(key) ?? 0;
    if (typeof known === 'number' && known < timesWithout) {
      this.#keep(key, known + 1);
      return null;
    }
    const opening = typeof known === 'number' ? StandingShell.open(this.#start, command, input) : known;
    this.#keep(key, opening);
    const shell = await opening.catch(() => null);
    const result = shell && (await shell.ask(deadlineMs, read));
    if (shell?.isGone !== false && this.#shells.get(key) === opening) this.#shells.set(key, 0);
    return result;
  }

  #keep(key: string, known: Promise<StandingShell> | number): void {
    this.#shells.delete(key);
    this.#shells.set(key, known);
    const [oldest] = this.#shells;
    if (this.#shells.size <= mostShells || oldest === undefined) return;
    const [forgotten, gone] = oldest;
    this.#shells.delete(forgotten);
    if (typeof gone !== 'number') gone.then((shell) => shell.close()).catch(() => {});
  }
}

/** What became of a question: what the shell said, or why it said nothing. */
type Outcome = { readonly said: number } | 'overdue' | 'gone';

class StandingShell {
  readonly #shell: Shell;
  readonly #files: readonly [FileHandle, FileHandle, FileHandle];
  #isGone = false;
  #hear: (outcome: Outcome) => void = () => {};
  /** The end of the last question: one at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  static async open(start: StartShell, command: readonly string[], input: string): Promise<StandingShell> {
    const files = [await openNameless(input), await openNameless(), await openNameless()] as const;
    return new StandingShell(await start(loop, command, files), files);
  }

  private constructor(shell: Shell, files: readonly [FileHandle, FileHandle, FileHandle]) {
    this.#shell = shell;
    this.#files = files;
    const listen = splitLines(16, (line) => this.#hear(line === null ? 'gone' : { said: Number(line) }));
    shell.onData(listen);
    shell.ended.then(() => this.#end('gone'));
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Null where it is gone. */
  ask<T>(deadlineMs: number, read: (answer: Answer) => Promise<T>): Promise<T | null> {
    const [, stdout, stderr] = this.#files;
    const answer = this.#turn.then(async () => {
      const outcome = await this.#run(deadlineMs);
      if (outcome === 'gone') return null;
      return read({ exitCode: outcome === 'overdue' ? null : outcome.said, stdout, stderr });
    });
    this.#turn = answer.catch(() => null).then(() => (this.#isGone ? this.#closeFiles() : undefined));
    return answer;
  }

  close(): void {
    this.#end('gone');
    this.#turn = this.#turn.then(() => this.#closeFiles());
  }

  async #run(deadlineMs: number): Promise<Outcome> {
    if (this.#isGone) return 'gone';
    const overdue = setTimeout(() => this.#end('overdue'), deadlineMs);
    const outcome = await new Promise<Outcome>((resolve) => {
      this.#hear = resolve;
      this.#shell.write('\n');
    });
    clearTimeout(overdue);
    if (outcome === 'gone') this.#end('gone');
    return outcome;
  }

  #end(why: 'overdue' | 'gone'): void {
    this.#isGone = true;
    this.#shell.kill();
    this.#hear(why);
  }

  async #closeFiles(): Promise<void> {
    for (const file of this.#files) await file.close();
  }
}
