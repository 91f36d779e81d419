import { printable } from '../../core/errors/index.ts';
import { dim, escapeUnshapely, red, yellow } from './output.ts';

/** A line of the log. All other fields are facts. */
interface Line {
  readonly level: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg?: string;
  /** The stack of an unexpected failure: several lines. */
  readonly stack?: string;
  readonly [fact: string]: unknown;
}

/** Prefixes a line with its priority for the journal (sd-daemon(3)). */
export function lineForJournal(line: string): string {
  return `<${priorityOf(Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? 30))}>${line}`;
}

/** Maps pino's levels, 10 (trace) to 60 (fatal), to syslog's: debug, info, warning, err, crit. */
function priorityOf(level: number): number {
  if (level >= 60) return 2;
  if (level >= 50) return 3;
  if (level >= 40) return 4;
  return level >= 30 ? 6 : 7;
}

/** Formats a log line for a terminal: time, level, message and facts. */
export function lineForPeople(line: string): string {
  const { level, time, msg = '', stack, ...facts } = JSON.parse(line) as Line;
  const pairs = Object.entries(facts).map(([name, value]) => dim(`${printable(name)}=`) + showFact(value));
  const head = [dim(new Date(time).toTimeString().slice(0, 8)), markOf(level), printable(msg), ...pairs];
  const rest = stack === undefined ? [] : stack.split('\n').map((each) => `  ${printable(each)}`);
  return `${[head.filter((part) => part !== '').join(' '), ...rest].join('\n')}\n`;
}

function markOf(level: number): string {
  if (level >= 50) return red('error:');
  if (level >= 40) return yellow('warning:');
  return level >= 30 ? '' : dim('debug:');
}

/** Leaves words without spaces unquoted. */
function showFact(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return printable(value);
  return escapeUnshapely(JSON.stringify(value));
}
