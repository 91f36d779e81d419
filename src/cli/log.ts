import { fstatSync } from 'node:fs';
import pino, { type Level, type Logger } from 'pino';
import { InvalidValue } from '../core/errors.ts';
import type { Input } from './input.ts';
import { escapeUnshapely } from './json-text.ts';
import { lineForJournal, lineForPeople } from './log-line.ts';

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/**
 * A log on stderr, at the level of CPN_LOG_LEVEL: lines of JSON, for the journal with their priority, and for a terminal as text.
 * It is written at once: a worker would lose the last lines of a process that dies, and does not survive bundling.
 */
export function openLog(input: Input, byDefault: Level | 'silent'): Logger {
  const level = input.environment.CPN_LOG_LEVEL ?? byDefault;
  if (!levels.includes(level)) throw new InvalidValue('CPN_LOG_LEVEL', level, `is none of ${levels.join(', ')}`);
  const stderr = pino.destination({ dest: 2, sync: true });
  const shape = shapeFor(input.environment.JOURNAL_STREAM);
  return pino({ level, base: null }, { write: (line: string) => stderr.write(shape(line)) });
}

function shapeFor(journal: string | undefined): (line: string) => string {
  if (process.stderr.isTTY) return lineForPeople;
  if (isJournal(journal)) return (line) => lineForJournal(escapeUnshapely(line));
  return escapeUnshapely;
}

/** JOURNAL_STREAM names the file that systemd gave us; a child, or a redirection, may have another (systemd.exec(5)). */
function isJournal(stream: string | undefined): boolean {
  if (stream === undefined) return false;
  const { dev, ino } = fstatSync(2, { bigint: true });
  return stream === `${dev}:${ino}`;
}
