import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { runDays } from '../../scripts/run-fuzz/days.ts';
import { countRuns, readSettings } from '../fuzz/settings.ts';
import { run } from '../lab/run.ts';

const root = join(import.meta.dirname, '../..');
const fuzz = (...argv: string[]) =>
  run([process.execPath, join(root, 'scripts/fuzz.ts'), ...argv], { timeoutMs: 50_000 });

describe('scripts/fuzz', () => {
  test('executes each property of the named files as often as --runs says, and prints the count in one line', async () => {
    const { stdout } = await fuzz('--runs', '3', '--seed', '7', 'test/fuzz/values');
    expect(stdout).toMatch(/^fuzz: 36 executions, seed 7, 12 properties$/m);
  });

  test.each([
    [['--runs', 'many']],
    [['--seed', 'x']],
    [['--minutes', '1', '--runs', '1']],
    [['--most', '3']],
    [['--hosts', 'test/fuzz/values']],
    [['--hosts', '--most', '0']],
    [['--hosts', '--path', 'x']],
  ])('%j is wrong usage', async (argv) => {
    await expect(fuzz(...argv)).rejects.toMatchObject({
      outcome: { exitCode: 2, stderr: expect.stringContaining('usage: scripts/fuzz') },
    });
  });
});

test('random days go on after one that failed, and each failure is printed with the command that repeats it', () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    const seeds: number[] = [];
    const run = { seed: 7, runs: 3, minutes: 1, most: 5, path: null, shrink: 0 };
    const status = runDays(run, (seed) => seeds.push(seed) !== 2);
    const printed = write.mock.calls.join('');
    expect([status, seeds]).toEqual([1, [7, 8, 9]]);
    expect(printed).toContain('fuzz: 3 days, seed 7, 1 failed\n');
    expect(printed).toContain('  scripts/fuzz --hosts --runs 1 --seed 8 --path 0 --most 5 --shrink 30\n');
    expect(runDays({ ...run, runs: null, minutes: 0 }, () => true)).toBe(0);
  } finally {
    write.mockRestore();
  }
});

test('a run has the same seed each time, unless another is given', () => {
  const [usual, named] = [readSettings({}, ''), readSettings({ CPN_FUZZ_SEED: '7', CPN_FUZZ_RUNS: '9' }, '')];
  expect(readSettings({}, '')).toEqual(usual);
  expect([named.seed, countRuns(named, 100), countRuns(usual, 100)]).toEqual([7, 9, 100]);
  expect(countRuns(readSettings({ CPN_FUZZ_UNTIL: '1' }, ''), 100)).toBeGreaterThan(100);
});
