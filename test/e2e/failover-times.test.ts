import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataCenter } from './data-center.ts';
import { measureOutages } from './outages.ts';

/** Each connector loses its upstream, and one its carrier. `scripts/bench failover` prints the times of 20 rounds. */
const rounds = 3;

let center: DataCenter;
beforeAll(async () => {
  center = await DataCenter.start();
});
afterAll(() => center?.stop());

test(`one connector takes over from the other, ${rounds} times`, { timeout: 300_000 }, async () => {
  const outages = await measureOutages(center, rounds);
  expect(outages.map(({ host, lost, servedBy }) => `${host}: ${lost} fails, ${servedBy} serves`)).toEqual([
    'origin: edge-1 fails, edge-2 serves',
    'laptop: edge-1 fails, edge-2 serves',
    'origin: edge-2 fails, edge-1 serves',
    'laptop: edge-2 fails, edge-1 serves',
    'origin: edge-1 fails, edge-2 serves',
    'laptop: edge-1 fails, edge-2 serves',
  ]);
});
