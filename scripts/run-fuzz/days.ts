import { spawnSync } from 'node:child_process';
import { dayVariables, repeatCommand } from '../../test/model/settings.ts';
import { most } from './read-count.ts';

/** Which random days, and how many. */
export interface DayRun {
  /** The seed of the first day; each other day has the next one. */
  readonly seed: number;
  /** Null to go on until the time is over. */
  readonly runs: number | null;
  readonly minutes: number;
  /** Happenings of a day. */
  readonly most: number;
  /** Where fast-check begins; null for the beginning. */
  readonly path: string | null;
  /** Minutes of the search for a smaller day after a failure. */
  readonly shrink: number;
}

/** Runs random days on lab hosts, all of them whatever fails; returns the exit code. */
export function runDays(run: DayRun, runDay: (seed: number, run: DayRun) => boolean = runDayByVitest): number {
  const until = Date.now() + run.minutes * 60_000;
  const failed: number[] = [];
  let days = 0;
  for (; run.runs === null ? days === 0 || Date.now() < until : days < run.runs; days += 1) {
    const seed = (run.seed + days) % most;
    if (!runDay(seed, run)) failed.push(seed);
  }
  process.stdout.write(`\nfuzz: ${days} days, seed ${run.seed}, ${failed.length} failed\n`);
  for (const seed of failed) process.stdout.write(`  ${repeatCommand({ seed, most: run.most }, run.path ?? '0')}\n`);
  return failed.length === 0 ? 0 : 1;
}

/** A process for each day: what one leaves behind when it fails does not reach the next. */
function runDayByVitest(seed: number, { most: happenings, path, shrink }: DayRun): boolean {
  const env = {
    ...process.env,
    [dayVariables.seed]: String(seed),
    [dayVariables.days]: '1',
    [dayVariables.most]: String(happenings),
    [dayVariables.shrink]: String(shrink),
    [dayVariables.tell]: '1',
    ...(path !== null && { [dayVariables.path]: path }),
  };
  const { status } = spawnSync('vitest', ['run', '--project', 'lab', 'test/model/day.test.ts'], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return status === 0;
}
