import pino, { type Level, type Logger } from 'pino';
import { InvalidValue } from '../core/errors.ts';
import type { Input } from './input.ts';
import { escapeUnshapely } from './json-text.ts';

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/**
 * A log of JSON lines on stderr, at the level of CPN_LOG_LEVEL. It is written at once: a worker would lose the last
 * lines of a process that dies, and does not survive bundling.
 */
export function openLog(input: Input, byDefault: Level | 'silent'): Logger {
  const level = input.environment.CPN_LOG_LEVEL ?? byDefault;
  if (!levels.includes(level)) throw new InvalidValue('CPN_LOG_LEVEL', level, `is none of ${levels.join(', ')}`);
  const stderr = pino.destination({ dest: 2, sync: true });
  return pino({ level, base: null }, { write: (line: string) => stderr.write(escapeUnshapely(line)) });
}
