import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataCenter } from './data-center.ts';
import { measureOutages } from './outages.ts';

const rounds = 20;

let center: DataCenter;
let outages: ReadonlyMap<string, number[]> = new Map();

beforeAll(async () => {
  center = await DataCenter.start();
});
afterAll(async () => {
  await center?.stop();
  process.stdout.write(`failover of a route and of the relay, in seconds without an answer\n${formatTable()}\n`);
});

test(`${rounds} times the connector in service dies, and the other takes over`, { timeout: 900_000 }, async () => {
  outages = await measureOutages(center, rounds);
  expect([...outages].map(([name, each]) => [name, each.length])).toEqual([
    ['origin', rounds],
    ['laptop', rounds],
  ]);
});

function formatTable(): string {
  const rows = [...outages].map(([name, seconds]) => {
    const sorted = seconds.toSorted((a, b) => a - b);
    const at = (share: number) => (sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN).toFixed(2).padStart(7);
    return `${name.padEnd(8)} ${String(sorted.length).padStart(4)} ${at(0.01)} ${at(0.5)} ${at(0.95)} ${at(1)}`;
  });
  return ['host     runs     min  median     p95     max', ...rows].join('\n');
}
