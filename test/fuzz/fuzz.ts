import { createHash } from 'node:crypto';
import { relative } from 'node:path';
import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { countRuns, type Settings } from './settings.ts';
import { writeTally } from './tally.ts';
import { bounded } from './time-bound.ts';

declare module 'vitest' {
  interface ProvidedContext {
    fuzz: Settings;
  }
}

/** How long a property runs at the most, with the search for smaller values; what it found until then counts. */
const SHORT_MS = 40_000;
const LONG_MS = 24 * 60 * 60 * 1000;
/** How much later vitest ends it, which it does where one execution does not end. */
const GRACE_MS = 40_000;

/**
 * Declares a test that `check` throws for no values. It is executed `usual` times in a short run. The values depend on the seed of
 * the run and on the name alone; of values for which it throws, it reports the smallest that it found, and how to reproduce them.
 */
export function fuzz<Values extends [unknown, ...unknown[]]>(
  name: string,
  usual: number,
  arbitraries: { readonly [At in keyof Values]: fc.Arbitrary<Values[At]> },
  check: (...values: Values) => void | Promise<void>,
): void {
  const settings = inject('fuzz');
  const most = settings.runs === null && settings.until === null ? SHORT_MS : LONG_MS;
  const execute = async () => {
    const left = settings.until === null ? most : Math.max(1000, settings.until - Date.now());
    let under: Promise<void> = Promise.resolve();
    const property = fc.asyncProperty(...arbitraries, (...values: Values) => {
      under = bounded(async () => check(...values));
      return under;
    });
    const details = await fc.check(property, {
      seed: seedOf(name, settings.seed),
      numRuns: countRuns(settings, usual),
      interruptAfterTimeLimit: left,
    });
    // After its time limit, fast-check leaves an execution running, which would disturb the next property's.
    await under.catch(() => {});
    writeTally(settings.tallies, details.numRuns + details.numShrinks);
    if (details.counterexample === null) return;
    throw new Error(`${await fc.asyncDefaultReportMessage(details)}\nagain: ${describeAgain(settings, details)}`, {
      cause: details.errorInstance,
    });
  };
  test(name, execute, most + GRACE_MS);
}

/** Of each property another one, so that none changes with how many others there are. */
function seedOf(name: string, seed: number): number {
  return createHash('sha256').update(`${seed} ${name}`).digest().readInt32LE();
}

function describeAgain({ seed }: Settings, { numRuns }: { readonly numRuns: number }): string {
  const file = relative(process.cwd(), expect.getState().testPath ?? '');
  return `scripts/fuzz --seed ${seed} --runs ${numRuns} ${file}`;
}
