import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { countRuns, readSettings } from '../fuzz/settings.ts';
import { run } from '../lab/run.ts';

const root = join(import.meta.dirname, '../..');
const fuzz = (...argv: string[]) =>
  run([process.execPath, join(root, 'scripts/fuzz.ts'), ...argv], { timeoutMs: 50_000 });

describe('scripts/fuzz', () => {
  test('executes each property of the files named as often as it is told, and says so in one line', async () => {
    const { stdout } = await fuzz('--runs', '3', '--seed', '7', 'test/fuzz/values');
    expect(stdout).toMatch(/^fuzz: 33 executions, seed 7, 11 properties$/m);
  });

  test.each([[['--runs', 'many']], [['--seed', 'x']], [['--minutes', '1', '--runs', '1']]])(
    '%j is wrong usage',
    async (argv) => {
      await expect(fuzz(...argv)).rejects.toMatchObject({
        outcome: { exitCode: 2, stderr: expect.stringContaining('usage: scripts/fuzz') },
      });
    },
  );
});

test('a run has the same seed each time, unless somebody names another', () => {
  const [usual, named] = [readSettings({}, ''), readSettings({ CPN_FUZZ_SEED: '7', CPN_FUZZ_RUNS: '9' }, '')];
  expect(readSettings({}, '')).toEqual(usual);
  expect([named.seed, countRuns(named, 100), countRuns(usual, 100)]).toEqual([7, 9, 100]);
  expect(countRuns(readSettings({ CPN_FUZZ_UNTIL: '1' }, ''), 100)).toBeGreaterThan(100);
});
