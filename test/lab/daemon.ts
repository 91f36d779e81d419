import { eventually } from './eventually.ts';
import type { Host } from './host.ts';
import type { Outcome, Process } from './process.ts';

/** A line of the daemon's log: a constant message, and facts. */
export interface LogLine {
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** 30 is info, 40 a warning, 50 an error. */
  readonly level: number;
  readonly msg: string;
  readonly interface?: string;
  readonly [fact: string]: unknown;
}

/** A position in the log. */
export type Mark = number;

/** `cpn run` on a host. `await using daemon = await startDaemon(…)` ends it where its test fails: a host has one daemon at a time. */
export class Daemon {
  readonly process: Process;
  #read = 0;
  readonly #lines: LogLine[] = [];

  constructor(process: Process) {
    this.process = process;
  }

  /** All that it logged so far; what is no JSON, such as a stack, becomes an error line. */
  get log(): readonly LogLine[] {
    const { stderr } = this.process.output;
    const end = stderr.lastIndexOf('\n') + 1;
    const fresh = stderr.slice(this.#read, end).split('\n').slice(0, -1);
    this.#read = end;
    this.#lines.push(...fresh.map(parseLine));
    return this.#lines;
  }

  /** Where the log is now. */
  mark(): Mark {
    return this.log.length;
  }

  /** What it logged since a mark. */
  since(mark: Mark): LogLine[] {
    return this.log.slice(mark);
  }

  /** Waits for a matching line, from `mark` on or the beginning. */
  awaitLog(what: string, matches: (line: LogLine) => boolean, mark: Mark = 0, timeoutMs = 30_000): Promise<LogLine> {
    return eventually(`a log line: ${what}`, () => this.since(mark).find(matches), { timeoutMs, everyMs: 20 }).catch(
      (error) => {
        const said = this.log.slice(-20).map((line) => JSON.stringify(line));
        throw new Error(`${error.message}; the log ends with\n${said.join('\n')}`);
      },
    );
  }

  /** Ends it with SIGTERM, or SIGKILL when that takes more than 10 s. */
  stop(): Promise<Outcome> {
    return this.process.stop(10_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Starts `cpn run` on a host. */
export async function startDaemon(host: Host, ...flags: string[]): Promise<Daemon> {
  return new Daemon(await host.spawnCpn(['run', ...flags]));
}

function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text);
  } catch {
    return { time: 0, level: 50, msg: text };
  }
}
