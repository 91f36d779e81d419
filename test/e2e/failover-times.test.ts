import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataCenter } from './data-center.ts';
import { type Death, measureOutages, type Outage } from './outages.ts';

/** `scripts/bench failover` prints the times of more of them. */
const deaths: readonly Death[] = [
  { kind: 'upstream', moment: 'settled' },
  { kind: 'carrier', moment: 'settled' },
];

let center: DataCenter;
beforeAll(async () => {
  center = await DataCenter.start();
});
afterAll(() => center?.stop());

test(`one connector takes over from the other, ${deaths.length} times`, { timeout: 300_000 }, async () => {
  const outages: Outage[] = [];
  for await (const outage of measureOutages(center, deaths)) outages.push(outage);
  expect(outages.map(({ host, lost, servedBy }) => `${host}: ${lost} fails, ${servedBy} serves`)).toEqual([
    'origin: edge-1 fails, edge-2 serves',
    'laptop: edge-1 fails, edge-2 serves',
    'origin: edge-2 fails, edge-1 serves',
    'laptop: edge-2 fails, edge-1 serves',
  ]);
});
