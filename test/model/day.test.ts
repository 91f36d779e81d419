import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { steps } from './happenings/steps.ts';
import { Invariants } from './invariants.ts';
import { initialModel, members } from './model.ts';
import { readDays, repeatCommand, timed } from './settings.ts';
import { Site } from './site.ts';

const { seed, path, days, most, shrink } = readDays(process.env);

test(`days of up to ${most} happenings, with the seed ${seed}`, { timeout: 24 * 60 * 60_000 }, async () => {
  process.stdout.write(`test/model: ${days} days with the seed ${seed}\n`);
  /** When the search for a smaller day ends: from then on each candidate counts as one that passes. */
  let shrinkEnd = Number.POSITIVE_INFINITY;
  const happenings = fc.noBias(fc.commands(steps, { maxCommands: most, size: 'max' }));
  const property = fc.asyncProperty(happenings, fc.constantFrom(...members), async (commands, leaver) => {
    if (Date.now() > shrinkEnd) return;
    const site = await timed('the hosts join', Site.start);
    try {
      const day = { site, invariants: new Invariants(site) };
      const model = initialModel();
      await timed('everything holds at first', () => day.invariants.settle(model));
      await fc.asyncModelRun(() => ({ model, real: day }), commands);
      await timed(`the end, at which ${leaver} leaves`, () => day.invariants.close(model, leaver));
    } catch (error) {
      shrinkEnd = Math.min(shrinkEnd, Date.now() + shrink * 60_000);
      throw error;
    } finally {
      await site.stop();
    }
  });
  const options = { seed, numRuns: days, ...(path && { path }), endOnFailure: shrink === 0, verbose: 1 };
  const result = await fc.check(property, options);
  const report = await fc.asyncDefaultReportMessage(result);
  const [first = '0'] = result.counterexamplePath?.split(':') ?? [];
  const repeat = `this day again: ${repeatCommand({ seed, most }, first)}`;
  expect(result.failed, `${report}\n${inspect(result.errorInstance, { depth: 5 })}\n${repeat}\n`).toBe(false);
});
