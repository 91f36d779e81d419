import { randomInt } from 'node:crypto';

/** The number of random days, and their seeds. */
export interface Days {
  /** The same seed gives the same days. */
  readonly seed: number;
  /** Where fast-check goes on, as it printed it; undefined for the beginning. */
  readonly path: string | undefined;
  readonly days: number;
  /** Happenings of a day. */
  readonly most: number;
  /** Minutes that the search for a smaller day that fails may take. */
  readonly shrink: number;
}

/** The variables by which scripts/fuzz gives the settings of the days. */
export const dayVariables = {
  seed: 'CPN_DAY_SEED',
  path: 'CPN_DAY_PATH',
  days: 'CPN_DAYS',
  most: 'CPN_DAY_MOST',
  shrink: 'CPN_DAY_SHRINK',
  tell: 'CPN_DAY_TELL',
};

/** Happenings of a day, by default. */
export const usualMost = 6;

/** A seed is below this. */
const seedEnd = 2 ** 31 - 1;

export function readDays(environment: NodeJS.ProcessEnv): Days {
  const read = (name: string, usual: () => number) => {
    const text = environment[name];
    return text === undefined ? usual() : Number(text);
  };
  return {
    seed: read(dayVariables.seed, () => randomInt(seedEnd)),
    path: environment[dayVariables.path],
    days: read(dayVariables.days, () => 1),
    most: read(dayVariables.most, () => usualMost),
    shrink: read(dayVariables.shrink, () => 3),
  };
}

/** The command that repeats a day, and then searches for a smaller one that fails. */
export function repeatCommand({ seed, most }: Pick<Days, 'seed' | 'most'>, path: string): string {
  return `scripts/fuzz --hosts --runs 1 --seed ${seed} --path ${path} --most ${most} --shrink 30`;
}

/** Does a part of a day. Its failure names it, and with `CPN_DAY_TELL` its seconds are printed. */
export async function timed<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  const begun = performance.now();
  try {
    const result = await work();
    const seconds = (performance.now() - begun) / 1000;
    if (process.env[dayVariables.tell] !== undefined) process.stdout.write(`  ${what}: ${seconds.toFixed(1)} s\n`);
    return result;
  } catch (error) {
    throw new Error(`after "${what}"`, { cause: error });
  }
}
