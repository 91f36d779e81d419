import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { steps } from './happenings.ts';
import { readDays } from './settings.ts';
import { initialModel, Site } from './site.ts';

const { seed, path, days, most } = readDays(process.env);

test(`days of up to ${most} happenings, with the seed ${seed}`, { timeout: 4 * 60 * 60_000 }, async () => {
  process.stdout.write(`test/model: ${days} days with the seed ${seed}\n`);
  const day = fc.commands(steps, { maxCommands: most, size: 'max' });
  const property = fc.asyncProperty(day, async (commands) => {
    const site = await Site.start();
    try {
      await fc.asyncModelRun(() => ({ model: initialModel(), real: site }), commands);
      await site.examineSecrets();
    } finally {
      await site.stop();
    }
  });
  const result = await fc.check(property, { seed, numRuns: days, ...(path && { path }), verbose: 1 });
  const report = await fc.asyncDefaultReportMessage(result);
  expect(result.failed, `${report}\n${inspect(result.errorInstance, { depth: 5 })}`).toBe(false);
});
