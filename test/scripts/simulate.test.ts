import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from '../lab/run.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-simulate-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const simulate = (...argv: string[]) =>
  run([process.execPath, join(import.meta.dirname, '../../scripts/simulate.ts'), ...argv], {
    timeoutMs: 50_000,
    env: { NODE_COMPILE_CACHE: join(folder, 'compiled') },
  });

test.each([
  ['sqlite', 1],
  ['postgres', 2],
])('scripts/simulate counts who enrols, who waits and what a change brings: %s ×%i', async (database, replicas) => {
  const file = join(folder, `${database}.json`);
  const size = ['--networks', '3', '--peers', '4', '--changes', '5', '--replicas', `${replicas}`];
  const { stdout } = await simulate(database, ...size, '--json', file);
  const { results } = JSON.parse(readFileSync(file, 'utf8'));
  expect(results).toHaveLength(1);
  const [result] = results;
  expect(result).toMatchObject({ database, replicas, networks: 3, peers: 4, enrollments: 12, waiting: 12, changes: 5 });
  // Each change reaches the four of its network, at whichever replica they wait.
  expect([result.replies, result.statuses]).toEqual([20, { 226: 20 }]);
  expect(result.replicasHold.map(({ waiting }: { waiting: number }) => waiting)).toEqual(
    Array.from({ length: replicas }, () => 12 / replicas),
  );
  // A change is one transaction, and each replica reads it in one more.
  expect(result.changing.commits).toBeGreaterThanOrEqual(10);
  expect(result.enrolling.statements).toBeGreaterThanOrEqual(12 * 10);
  expect(result.enrolling.databaseCpuMs > 0).toBe(database === 'postgres');
  expect(result.databaseBytes).toBeGreaterThan(0);
  expect(stdout.trim().split('\n')).toHaveLength(3);
});

test.each([[[]], [['mysql']], [['sqlite', '--replicas', '2']], [['sqlite', '--peers', '0']]])(
  'prints its usage for %j',
  async (argv) => {
    await expect(simulate(...argv)).rejects.toThrow(/usage: scripts\/simulate/);
  },
);
