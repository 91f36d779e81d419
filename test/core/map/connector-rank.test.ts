import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findRelays } from '../../../src/console/logic/peers/connectors.ts';
import type { Peer as ListedPeer } from '../../../src/contract/peer.ts';
import { compareConnectors } from '../../../src/core/map/connector-rank.ts';
import { rankConnectors } from '../../../src/core/routing/topology/topology.ts';
import { peer } from '../samples.ts';

const since = (day: number) => `2026-01-0${day}T00:00:00.000Z`;
const order = (connectors: Parameters<typeof compareConnectors>[0][]) =>
  connectors.toSorted(compareConnectors).map(({ id }) => id);

describe('the rank of connectors', () => {
  it('is by priority, then by the time in service, then by id', () => {
    expect(
      order([
        { id: 1, serving_since: null },
        { id: 2, serving_since: since(2) },
        { id: 3, serving_since: since(1), priority: 0 },
        { id: 4, serving_since: since(3), priority: 7 },
        { id: 5, serving_since: Date.parse(since(2)) },
        { id: 6 },
        { id: 'x', serving_since: since(2) },
      ]),
    ).toEqual([4, 3, 2, 5, 'x', 1, 6]);
  });

  it('is the same on hosts and in the console', () => {
    const connector = fc.record({
      priority: fc.integer({ min: 0, max: 2 }),
      day: fc.option(fc.integer({ min: 1, max: 3 })),
    });
    fc.assert(
      fc.property(fc.array(connector, { minLength: 2, maxLength: 6 }), (drawn) => {
        const hosts = drawn.map(({ priority, day }, at) => ({
          ...peer(at + 1, { type: 'connector' }),
          priority,
          ...(day !== null && { servingSince: Date.parse(since(day)) }),
        }));
        const listed = drawn.map(({ priority, day }, at) => ({
          ...{ id: at + 1, peer_type: 'connector', priority },
          ...(day !== null && { serving_since: since(day) }),
        }));
        const inConsole = findRelays(listed as ListedPeer[], '10.77.0.0/24').map(({ id }) => id);
        expect(inConsole).toEqual(hosts.toSorted(rankConnectors([]).compare).map(({ id }) => id));
      }),
    );
  });
});
