import { afterAll, beforeAll, expect, it } from 'vitest';
import { Lab } from '../lab/lab.ts';
import { startGateway } from './gateway.ts';
import { allChanged, countFaults, countThroughReloads, type Outcome } from './reloads.ts';
import type { Wire } from './wire.ts';

let lab: Lab;
let wire: Wire;

beforeAll(async () => {
  lab = await Lab.start();
  ({ wire } = await startGateway(lab));
});

afterAll(async () => {
  await wire?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

it.each(allChanged)(
  'no packet is lost that both allow, and none passes that none allows: %s change',
  async (changed) => {
    const outcomes = await countThroughReloads(wire, changed, 'in place', 60, 25_000);
    expect(countFaults(outcomes)).toEqual({ lost: 0, passed: 0 });
    expectChanges(outcomes);
  },
);

// While the kernel replaces maps, it may drop a packet that is on its way.
it('no packet passes that none allows while the whole table is loaded', async () => {
  const outcomes = await countThroughReloads(wire, 'parts of a route', 'whole table', 60, 25_000);
  expect(countFaults(outcomes).passed).toBe(0);
  expectChanges(outcomes);
});

function expectChanges(outcomes: readonly Outcome[]): void {
  for (const { what, allowed, sent, arrived } of outcomes)
    if (allowed === 'by one') expect([what, arrived > 0, arrived < sent]).toEqual([what, true, true]);
}
