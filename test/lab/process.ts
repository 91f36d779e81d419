import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { memory } from './memory.ts';

/** Where to run a program, and with what. */
export interface ProcessOptions {
  /** Text for its standard input, which is closed after it; without it, the program reads end of file at once. */
  readonly input?: string | undefined;
  /** True to leave its standard input open until `closeInput`, or until the owner is gone. */
  readonly holdInput?: boolean;
  /** The whole environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** True where the program is the child of the spawned one, as `nsenter --pid` makes it. */
  readonly wrapped?: boolean;
  /** What messages call it, such as `origin: cpn run`. */
  readonly label?: string;
}

/** How a program ended, and its output. */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  /** Null where a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program that failed, or exceeded a time limit. */
export class ProcessError extends Error {
  override readonly name = 'ProcessError';
  readonly outcome: Outcome;

  constructor(message: string, outcome: Outcome) {
    const said = [outcome.stderr, outcome.stdout].map((text) => text.trim().slice(-4000)).filter((text) => text !== '');
    super([message, ...said].join('\n'));
    this.outcome = outcome;
  }
}

/** How long a background process may hold a finished program's output open. */
const DRAIN_MS = 200;
const DRAIN_MOST_MS = 2000;

/** A running program. */
export class Process {
  readonly label: string;
  /** Settles when the program has ended; never rejects. */
  readonly exited: Promise<Outcome>;
  readonly #child: ChildProcess;
  readonly #wrapped: boolean;
  readonly #lines: string[] = [];
  #consumed = 0;
  #stdout = '';
  #stderr = '';
  #ended = false;
  #wake = Promise.withResolvers<void>();

  constructor(argv: readonly string[], options: ProcessOptions = {}) {
    const [file = '', ...rest] = argv;
    this.label = options.label ?? argv.join(' ');
    this.#wrapped = options.wrapped ?? false;
    // A session of its own: a Ctrl-C at the owner's terminal is for the owner alone, which then takes the lab down.
    const input =
      options.holdInput === true ? 'pipe' : options.input === undefined ? 'ignore' : openText(options.input);
    this.#child = spawn(file, rest, {
      env: options.env ?? process.env,
      detached: true,
      stdio: [input, 'pipe', 'pipe'],
    });
    if (typeof input === 'number') closeSync(input);
    this.#child.stdin?.on('error', () => {});
    this.exited = this.#follow(this.#child);
  }

  /** All that it has written on standard output and standard error so far, as two texts. */
  get output(): { readonly stdout: string; readonly stderr: string } {
    return { stdout: this.#stdout, stderr: this.#stderr };
  }

  /** The process id of the program itself as the owner sees it; undefined once it's gone. */
  get pid(): number | undefined {
    const { pid } = this.#child;
    if (!this.#wrapped || pid === undefined || this.#ended) return this.#ended ? undefined : pid;
    try {
      const [inner] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
      return inner === undefined || inner === '' ? undefined : Number(inner);
    } catch {
      return undefined;
    }
  }

  /**
   * Waits for a line, on either output, that matches. Lines up to the match are consumed: the next call begins after it.
   * Fails when the program ends first or the time is over.
   */
  async waitForLine(pattern: RegExp, timeoutMs = 30_000): Promise<RegExpExecArray> {
    const late = sleep(timeoutMs, 'late' as const, { ref: false });
    for (;;) {
      const wake = this.#wake.promise;
      while (this.#consumed < this.#lines.length) {
        const match = pattern.exec(this.#lines[this.#consumed++] ?? '');
        if (match !== null) return match;
      }
      if (this.#ended) throw new ProcessError(`${this.label}: ended without a line like ${pattern}`, await this.exited);
      if ((await Promise.race([wake, late])) === 'late') {
        const soFar = { ...this.output, exitCode: null, signal: null };
        throw new ProcessError(`${this.label}: no line like ${pattern} within ${timeoutMs} ms`, soFar);
      }
    }
  }

  /** Writes to a standard input that is held open. */
  writeInput(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Ends a standard input that was held open. */
  closeInput(): void {
    this.#child.stdin?.end();
  }

  /** Sends a signal to the program itself, not to what it started. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this;
    // nsenter(1) stops with the program that it waits for, and does not go on with it.
    if (pid === undefined || signal === 'SIGCONT') this.#child.kill(signal);
    if (pid !== undefined) sendSignal(pid, signal);
  }

  /** Ends it with SIGTERM, with SIGKILL when it takes longer than `timeoutMs`, and returns how it ended. */
  async stop(timeoutMs = 5000): Promise<Outcome> {
    if (!this.#ended) this.signal('SIGTERM');
    return this.endWithin(timeoutMs);
  }

  /** Waits for its end, which is forced with SIGKILL after `timeoutMs`. */
  async endWithin(timeoutMs: number): Promise<Outcome> {
    const timer = setTimeout(() => this.signal('SIGKILL'), timeoutMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Lets the owner end while this still runs. */
  unref(): this {
    this.#child.unref();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      if (stream !== null && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
    }
    return this;
  }

  #follow(child: ChildProcess): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    let drain: NodeJS.Timeout | undefined;
    let drainUntil = 0;
    const finish = (exitCode: number | null, signal: NodeJS.Signals | null): void => {
      clearTimeout(drain);
      for (const rest of partial.values()) if (rest !== '') this.#lines.push(rest);
      partial.clear();
      this.#ended = true;
      this.#notify();
      resolve({ ...this.output, exitCode, signal });
    };
    const partial = new Map<'stdout' | 'stderr', string>();
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        if (name === 'stdout') this.#stdout += text;
        else this.#stderr += text;
        const lines = ((partial.get(name) ?? '') + text).split('\n');
        partial.set(name, lines.pop() ?? '');
        this.#lines.push(...lines);
        this.#notify();
        if (performance.now() < drainUntil) drain?.refresh();
      });
    }
    child.once('error', (error) => {
      this.#stderr += error.message;
      finish(127, null);
    });
    child.once('exit', (exitCode, signal) => {
      // A daemon left behind may keep the pipes open for ever: then the end is what counts.
      drainUntil = performance.now() + DRAIN_MOST_MS;
      drain = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
        finish(exitCode, signal);
      }, DRAIN_MS);
    });
    child.once('close', finish);
    return promise;
  }

  #notify(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }
}

/**
 * An open file with this text, which has no name any more. As a standard input it can be opened again as /dev/stdin, which tools such as
 * wg do; what Node calls a pipe is a socket, which can't.
 */
function openText(text: string): number {
  const path = join(memory, `cpn-lab-input-${randomUUID()}`);
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  const file = openSync(path, 'r');
  unlinkSync(path);
  return file;
}

/** Sends a signal to a process that may be gone already. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended meanwhile.
  }
}
