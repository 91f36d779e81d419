import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { variables } from '../../test/fuzz/settings.ts';
import { describeTally, type Tally } from '../../test/fuzz/tally.ts';

/** How long to go on, from which seed, and with which files. */
export interface PropertyRun {
  readonly words: readonly string[];
  readonly seed: number;
  /** Executions of each property, in one round; null to go on until the time is over. */
  readonly runs: number | null;
  readonly minutes: number;
}

/** Executes the properties in rounds, until one fails or the end; returns the exit code. */
export function runProperties({ words, seed, runs, minutes }: PropertyRun): number {
  const until = runs === null ? Date.now() + minutes * 60_000 : null;
  const folder = mkdtempSync(join(tmpdir(), 'cpn-fuzz-'));
  try {
    const total = join(folder, 'total');
    let status = 0;
    let last = seed;
    for (let round = seed; status === 0 && (round === seed || (until !== null && Date.now() < until)); round += 1) {
      last = round;
      status = runRound(words, { seed: round, runs, until, total });
    }
    const rounds = readRounds(total);
    const executions = rounds.reduce((sum, each) => sum + each.executions, 0);
    const sum = { executions, properties: Math.max(0, ...rounds.map(({ properties }) => properties)) };
    if (last > seed) process.stdout.write(`\n${describeTally(sum, `${seed} to ${last}`)}\n`);
    return status;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Round {
  readonly seed: number;
  readonly runs: number | null;
  readonly until: number | null;
  readonly total: string;
}

function runRound(words: readonly string[], { seed, runs, until, total }: Round): number {
  const env = {
    ...process.env,
    [variables.seed]: String(seed),
    [variables.total]: total,
    ...(runs !== null && { [variables.runs]: String(runs) }),
    ...(until !== null && { [variables.until]: String(until) }),
  };
  const { status } = spawnSync('vitest', ['run', '--project', 'fuzz', ...words], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return status ?? 1;
}

function readRounds(path: string): Tally[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line): Tally => JSON.parse(line));
  } catch {
    return [];
  }
}
