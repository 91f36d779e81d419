import { createHash } from 'node:crypto';
import { relative } from 'node:path';
import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { bounded } from './bound.ts';
import { countRuns, type Settings } from './settings.ts';
import { writeTally } from './tally.ts';

declare module 'vitest' {
  interface ProvidedContext {
    fuzz: Settings;
  }
}

/** How long a property goes on at the most, be it that smaller values are looked for; what it found until then holds. */
const SHORT_MS = 40_000;
const LONG_MS = 24 * 60 * 60 * 1000;
/** How much later vitest ends it, which it does where one execution does not end. */
const GRACE_MS = 40_000;

/**
 * Declares a test that `check` throws for no values. It is executed `usual` times in a short run. The values depend on the seed of
 * the run and on the name alone; of values for which it throws, the smallest that were found are told, and how to meet them again.
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
    // Out of time, fast-check leaves an execution to itself, which would get in the way of the next property's.
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
