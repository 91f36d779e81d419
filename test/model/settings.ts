import { randomInt } from 'node:crypto';

/** How many random days there are, and which. */
export interface Days {
  /** The same seed gives the same days. */
  readonly seed: number;
  /** Where fast-check goes on, as it printed it; undefined for the beginning. */
  readonly path: string | undefined;
  readonly days: number;
  /** Happenings of a day. */
  readonly most: number;
}

const dayVariables = {
  seed: 'CPN_DAY_SEED',
  path: 'CPN_DAY_PATH',
  days: 'CPN_DAYS',
  most: 'CPN_DAY_MOST',
};

export function readDays(environment: NodeJS.ProcessEnv): Days {
  const read = (name: string, usual: () => number) => {
    const text = environment[name];
    return text === undefined ? usual() : Number(text);
  };
  return {
    seed: read(dayVariables.seed, () => randomInt(2 ** 31 - 1)),
    path: environment[dayVariables.path],
    days: read(dayVariables.days, () => 1),
    most: read(dayVariables.most, () => 12),
  };
}
