import { constants, fstatSync, openSync } from 'node:fs';
import pino, { type Level, type Logger } from 'pino';
import { type Input, parseChoice } from '../input/input.ts';
import { lineForJournal, lineForPeople } from './log-line.ts';
import { escapeUnshapely } from './output.ts';

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Bytes that may wait for a slow or stopped reader. */
const mostWaiting = 256 * 1024;
const retryMs = 100;
/** Milliseconds for which the end of the process waits for a slow reader. */
const farewellMs = 500;

/**
 * A log on stderr, at the level of CPN_LOG_LEVEL. Lines are JSON, with a priority for the journal,
 * or text for a terminal. Writes synchronously: a worker would lose the last lines of a crash, and
 * cannot be bundled. Never waits for its reader. Drops and counts lines that do not fit.
 */
export function openLog(input: Input, byDefault: Level | 'silent'): Logger {
  const level = parseChoice('CPN_LOG_LEVEL', input.environment.CPN_LOG_LEVEL ?? byDefault, levels);
  const stderr = openStderr();
  const shape = shapeFor(input.environment.JOURNAL_STREAM);
  const log = pino({ level, base: null }, { write: (line: string) => stderr.write(shape(line)) });
  let dropped = 0;
  stderr.on('drop', () => {
    dropped += 1;
  });
  stderr.on('drain', () => {
    const lines = dropped;
    dropped = 0;
    if (lines > 0) log.warn({ lines }, 'log lines dropped');
    // This line was dropped too.
    if (dropped > 0) dropped = lines;
  });
  return log;
}

function openStderr() {
  let end = Number.NEGATIVE_INFINITY;
  const stderr = pino.destination({
    dest: openWithoutWaiting(),
    sync: true,
    maxLength: mostWaiting,
    retryEAGAIN: () => performance.now() < end,
  });
  let isWaiting = false;
  const retryLater = () => {
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      stderr.write('');
    }, retryMs).unref();
  };
  // Flushes only for a slow reader: on a full disk, pino's flush waits forever.
  let isSlow = false;
  const flush = () => {
    if (!isSlow) return;
    end = performance.now() + farewellMs;
    try {
      stderr.flushSync();
    } catch {
      // The reader has stopped permanently.
    }
  };
  // The failure cannot be reported. Unwritten lines are retried with the next line, or after a
  // delay for a slow reader.
  stderr.on('error', ({ code }: NodeJS.ErrnoException) => {
    isSlow = code === 'EAGAIN';
    if (isSlow) retryLater();
    if (!process.listeners('exit').includes(flush)) process.on('exit', flush);
  });
  return stderr;
}

/** Node makes pipes and sockets non-blocking. A stopped terminal needs its own file description. */
function openWithoutWaiting(): number {
  if (!process.stderr.isTTY) return 2;
  try {
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return 2;
  }
}

function shapeFor(journal: string | undefined): (line: string) => string {
  if (process.stderr.isTTY) return lineForPeople;
  if (isJournal(journal)) return (line) => lineForJournal(escapeUnshapely(line));
  return escapeUnshapely;
}

/** JOURNAL_STREAM identifies systemd's file. A child may have another (systemd.exec(5)). */
function isJournal(stream: string | undefined): boolean {
  if (stream === undefined) return false;
  const { dev, ino } = fstatSync(2, { bigint: true });
  return stream === `${dev}:${ino}`;
}
