import { ftruncateSync, writeSync } from 'node:fs';
import { Secret } from '../../core/crypto/secret.ts';
import { type AnonymousFile, openAnonymousFile } from './anonymous-file.ts';
import { splitLines } from './lines.ts';

/** A shell that was started: what goes in and comes out, and how it is ended with all that it runs. */
export interface Shell {
  write(text: string): void;
  onData(listen: (piece: string) => void): void;
  readonly ended: Promise<unknown>;
  kill(): void;
}

/** Starts `sh -c SCRIPT ARGUMENTS…`, with these files as descriptors 3 and on. */
export type StartShell = (script: string, args: readonly string[], files: readonly AnonymousFile[]) => Promise<Shell>;

/** How a tool ended in a shell of the pool; the exit code is null after its deadline. */
export interface Answer {
  readonly exitCode: number | null;
  readonly stdout: AnonymousFile;
  readonly stderr: AnonymousFile;
}

/**
 * The command line is in the shell's arguments, so that the shell parses no word of it. Opening the files again sets the tool's
 * offsets to 0; PWD would be the shell's own.
 */
const loop = `unset PWD
while read -r _; do
  "$@" </proc/self/fd/3 >/proc/self/fd/4 2>/proc/self/fd/5 3<&- 4<&- 5<&-
  echo "$?"
done`;

/** A command observes at most twice, before and after its changes: it needs no shell. */
const timesWithout = 2;
const mostShells = 16;

/**
 * Shells for commands that run again and again, as the observers of a daemon do. Starting a process takes Node 3 to 10 ms, more the
 * larger Node is, because the kernel copies its page tables (fork(2)); a shell of 1 MB takes a fraction of one. With 10,000 peers a
 * pass with nothing to do takes 80 ms of CPU with them, and 97 ms without. They end with this process.
 */
export class ShellPool {
  readonly #start: StartShell;
  /** By command; before it has a shell, how often it ran. */
  readonly #shells = new Map<string, Promise<StandingShell> | number>();

  constructor(start: StartShell) {
    this.#start = start;
  }

  /**
   * Runs a command, whose path comes first, in its shell, and returns what `read` makes of its output. Null where there is no shell:
   * the first two times, so that a command that runs once costs no shell, and where the shell is gone.
   */
  async ask<T>(
    command: readonly string[],
    input: string | Secret,
    deadlineMs: number,
    read: (answer: Answer) => Promise<T>,
  ): Promise<T | null> {
    const key = command.join('\0');
    const known = this.#shells.get(key) ?? 0;
    if (typeof known === 'number' && known < timesWithout) {
      this.#keep(key, known + 1);
      return null;
    }
    const opening = typeof known === 'number' ? StandingShell.open(this.#start, command) : known;
    this.#keep(key, opening);
    const shell = await opening.catch(() => null);
    const result = shell && (await shell.ask(input, deadlineMs, read));
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

/** How a run ended: with the shell's line, or why there is none. */
type Outcome = { readonly said: number } | 'overdue' | 'gone';

class StandingShell {
  readonly #shell: Shell;
  readonly #files: readonly [AnonymousFile, AnonymousFile, AnonymousFile];
  /** What the file of the tool's input holds. */
  #input = '';
  #isGone = false;
  #hear: (outcome: Outcome) => void = () => {};
  /** The end of the last run: one at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  static async open(start: StartShell, command: readonly string[]): Promise<StandingShell> {
    const files = [openAnonymousFile(), openAnonymousFile(), openAnonymousFile()] as const;
    return new StandingShell(await start(loop, command, files), files);
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

  /** Null where it is gone. */
  ask<T>(input: string | Secret, deadlineMs: number, read: (answer: Answer) => Promise<T>): Promise<T | null> {
    const [stdin, stdout, stderr] = this.#files;
    const answer = this.#turn.then(async () => {
      if (this.#isGone) return null;
      const text = input instanceof Secret ? input.reveal() : input;
      if (text !== this.#input) this.#write(stdin, text);
      const outcome = await this.#run(deadlineMs);
      if (input instanceof Secret) this.#write(stdin, '');
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

  #write({ fd }: AnonymousFile, text: string): void {
    ftruncateSync(fd);
    writeSync(fd, text, 0);
    this.#input = text;
  }

  async #run(deadlineMs: number): Promise<Outcome> {
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

  #closeFiles(): void {
    for (const file of this.#files) file.close();
  }
}
