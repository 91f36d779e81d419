import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cellsOf, conclude, heading } from '../../scripts/measure/comparison.ts';
import { describeSpreads, listDeaths } from '../../scripts/measure/host/failover.ts';
import { spreadOf } from '../../scripts/measure/spread.ts';
import { run } from '../lab/run.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-bench-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const root = join(import.meta.dirname, '../..');
const bench = (...argv: string[]) =>
  run([process.execPath, join(root, 'scripts/bench.ts'), ...argv], {
    timeoutMs: 45_000,
    env: { NODE_COMPILE_CACHE: join(folder, 'compiled') },
  });

describe('scripts/bench push', () => {
  test.each([
    ['the changes alone', [], 226],
    ['whole maps', ['--whole'], 200],
    ['new connections each time', ['--reconnect'], 226],
  ])('counts a reply to everybody who waits for each change: %s', async (_, flags, status) => {
    const file = join(folder, `${flags.join()}.json`);
    const { stdout } = await bench('push', '--waiting', '12', '--changes', '4', '--alone', '--json', file, ...flags);
    const { bench: name, results } = JSON.parse(readFileSync(file, 'utf8'));
    expect([name, results.length]).toEqual(['push', 1]);
    const [result] = results;
    expect(result).toMatchObject({ networks: 1, peers: 12, changes: 4, replies: 48, statuses: { [status]: 48 } });
    for (const { p50, p95, p99, max } of [result.delay, result.last, result.acknowledged]) {
      expect([p50, p95, p99, max]).toEqual([p50, p95, p99, max].toSorted((a, b) => a - b));
    }
    // A whole map has each of the twelve peers, a change the one that it concerns.
    expect(result.bytesPerReply > 12 * 200).toBe(status === 200);
    expect(result.serverCpuMsPerChange).toBeGreaterThan(0);
    expect(stdout.trim().split('\n')).toHaveLength(2);
    expect(stdout).toContain(`48×${status}`);
  });

  test.each([
    [[]],
    [['pull']],
    [['failover', '--rounds', '0']],
    [['start', '--rounds', '3']],
    [['push', '--waiting', '0']],
    [['push', '--changes', 'many']],
  ])('prints its usage for %j', async (argv) => {
    await expect(bench(...argv)).rejects.toThrow(
      /usage: scripts\/bench[\s\S]* scripts\/bench push|usage: scripts\/bench push/,
    );
  });
});

test('scripts/bench check shows its usage for an unknown subject', async () => {
  await expect(bench('check', 'nonsense')).rejects.toThrow('usage: scripts/bench check');
});

test('figures are compared by their medians, and held against the target', () => {
  const common = { what: 'a pass', baseline: 'the tools', unit: 'ms', ours: [3, 1, 2, 10], theirs: [1, 2, 1] } as const;
  const target = { ratioAtMost: 2.5, text: '≤ 2.5' };
  const result = conclude({ ...common, target });
  expect(result).toMatchObject({ runs: 4, median: 2.5, min: 1, max: 10, baselineMedian: 1, ratio: 2.5, met: true });
  expect(conclude({ ...common, target: { ...target, ratioAtMost: 2.4 } }).met).toBe(false);
  expect(conclude({ ...common, theirs: [], target: { atMost: 9, text: '≤ 9' } })).toMatchObject({
    ratio: null,
    met: false,
  });
  expect(cellsOf(result)).toHaveLength(heading.length);
  const most = conclude({ ...common, target: { share: 0.75, atMost: 3, text: 'p75 ≤ 3' } });
  expect([most.met, cellsOf(most).at(-1)]).toEqual([true, 'yes (3.00)']);
  expect(conclude({ ...common, target: { share: 0.76, atMost: 3, text: 'p76 ≤ 3' } }).met).toBe(false);
});

test('each kind of death comes at each moment in turn, and a late failover is counted', () => {
  const deaths = listDeaths(17);
  expect(new Set(deaths.map(({ kind, moment }) => `${kind} ${moment}`)).size).toBe(16);
  expect(deaths[16]).toEqual(deaths[0]);
  const death = { kind: 'host', moment: 'settled', host: 'origin', lost: 'edge-1', servedBy: 'edge-2' } as const;
  const outages = [1, 3.5, 2].map((seconds) => ({ ...death, seconds, withoutHandshake: null, at: 0, log: [] }));
  const lines = describeSpreads(outages).split('\n');
  expect(lines.slice(2)).toEqual([
    '| host, settled | 3 | 2.00 | 3.50 | 3.50 | 1 |',
    '| all | 3 | 2.00 | 3.50 | 3.50 | 1 |',
    '',
  ]);
});

test('a spread uses the nearest rank', () => {
  expect(spreadOf([5])).toEqual({ p50: 5, p95: 5, p99: 5, max: 5 });
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(spreadOf(hundred)).toEqual({ p50: 50, p95: 95, p99: 99, max: 100 });
  expect(() => spreadOf([])).toThrow('nothing was measured');
});
