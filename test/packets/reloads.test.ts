import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tableOf } from '../../src/core/forward/own-table.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { renderGateway, renderReplacement, startGateway } from './gateway.ts';
import { gatewayPairs } from './gateway-cases.ts';
import { allChanged, countFaults, countThroughReloads, type Outcome } from './reloads.ts';
import type { Wire } from './wire.ts';

let lab: Lab;
let host: Host;
let wire: Wire;

beforeAll(async () => {
  lab = await Lab.start();
  ({ host, wire } = await startGateway(lab));
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

it('a table that is changed in place is the one that a load of the whole table makes', async () => {
  const loadAll = async (texts: readonly string[]) => {
    for (const nft of texts) await wire.exchange({ nft });
    const { stdout } = await host.exec(['nft', '--json', 'list', 'table', 'inet', tableOf('cpn0')]);
    return objectsOf(stdout);
  };
  let changes = 0;
  await fc.assert(
    fc.asyncProperty(gatewayPairs, async ({ before, gateway }) => {
      const parts = renderReplacement(gateway, before);
      if (parts.length > 1) changes += 1;
      expect(await loadAll(parts)).toEqual(await loadAll([renderGateway(gateway)]));
    }),
    { numRuns: 30 },
  );
  expect(changes).toBeGreaterThan(5);
});

// While the kernel replaces maps, it may drop a packet that is on its way.
it('no packet passes that none allows while the whole table is loaded', async () => {
  const outcomes = await countThroughReloads(wire, 'parts of a route', 'whole table', 60, 25_000);
  expect(countFaults(outcomes).passed).toBe(0);
  expectChanges(outcomes);
});

interface Listed {
  readonly rule?: { readonly chain: string };
}

/** What `nft` lists, without handles, counts and the order of elements, which depend on the past. */
function objectsOf(json: string): unknown[] {
  const { nftables } = JSON.parse(json, (key, value) => {
    if (key === 'handle' || key === 'packets' || key === 'bytes') return undefined;
    return key === 'elem' && Array.isArray(value) ? value.map((each) => JSON.stringify(each)).toSorted() : value;
  });
  const placeOf = ({ rule, ...other }: Listed) =>
    rule === undefined ? JSON.stringify(other) : `rules of ${rule.chain}`;
  const inPlaces = Map.groupBy(nftables as Listed[], placeOf);
  return [...inPlaces].toSorted(([one], [other]) => (one < other ? -1 : 1)).flatMap(([, each]) => each);
}

function expectChanges(outcomes: readonly Outcome[]): void {
  for (const { what, allowed, sent, arrived } of outcomes)
    if (allowed === 'by one') expect([what, arrived > 0, arrived < sent]).toEqual([what, true, true]);
}
