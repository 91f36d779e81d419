import { describe, expect, it } from 'vitest';
import type { Peer } from '../../../../src/core/map/model.ts';
import { leavesRelay, leavesRoute } from '../../../../src/core/routing/topology/withdrawal.ts';
import { dialled, network, peer, prefix } from '../../samples.ts';

const lan = prefix('192.168.50.0/24');
const edge = (id: number, changes: Partial<Peer> = {}) => peer(id, { type: 'connector', servingSince: id, ...changes });
const out = { routes: [], withdrawn: [lan] };

/** Whether the first peer leaves the route to the others. */
const leaves = (self: Peer, ...others: readonly Peer[]) =>
  leavesRoute(network([self, ...others], { routes: [lan] }), self, lan);

describe('a connector that cannot forward to a route', () => {
  it.each([
    ['to one that serves later', edge(1), [edge(2)], true],
    ['to none that served before', edge(2), [edge(1)], false],
    ['to one of lower priority', edge(2, { priority: 5 }), [edge(1)], true],
    ['to none of higher priority', edge(1), [edge(2, { priority: 5 })], false],
    ['to none that is out of service', edge(1), [edge(2, out)], false],
    ['to none that serves other routes', edge(1), [edge(2, { routes: [] })], false],
    ['to none without another', edge(1), [peer(2)], false],
    ['once it left it, to one that served before', edge(2, out), [edge(1)], true],
    ['once it left it, to none where no other serves', edge(2, out), [edge(1, out), peer(3)], false],
  ])('leaves it %s', (_, self, others, expected) => {
    expect(leaves(self, ...others)).toBe(expected);
  });

  it('never leaves it without a connector, where none can forward, in whatever order they find out', () => {
    const orders = [1, 2, 3].flatMap((a) => [1, 2, 3].flatMap((b) => [1, 2, 3].map((c) => [a, b, c] as const)));
    for (const order of orders) {
      const out = new Set<number>();
      const map = () =>
        network(
          [1, 2, 3].map((id) => edge(id, out.has(id) ? { routes: [], withdrawn: [lan] } : {})),
          { routes: [lan] },
        );
      for (const id of [...order, ...order, ...order]) {
        const now = map();
        const leaving = leavesRoute(now, now.peers.find((each) => each.id === id) as Peer, lan);
        if (leaving) out.add(id);
        else out.delete(id);
        expect(out.size).toBeLessThan(3);
      }
    }
  });
});

describe('a connector that cannot forward from peer to peer', () => {
  const relayed = (self: Peer, relay: number | undefined, ...others: readonly Peer[]) => {
    const map = network([self, ...others]);
    return leavesRelay(relay === undefined ? map : { ...map, relay }, self);
  };
  const idle = { withdrawn: [network([]).cidr] };
  const dialledEdge = (id: number, changes: Partial<Peer> = {}) => edge(id, { endpoint: dialled(id), ...changes });

  it.each([
    ['as the relay, to any other', dialledEdge(2), 2, [dialledEdge(1)], true],
    ['as the relay, to none that does not relay', dialledEdge(1), 1, [dialledEdge(2, idle)], false],
    ['as the relay, to none without an endpoint', dialledEdge(1), 1, [edge(2)], false],
    ['as the relay, to no other host', dialledEdge(1), 1, [peer(2, { endpoint: dialled(2) })], false],
    ['as a standby, to one of lower rank', dialledEdge(1), 3, [dialledEdge(2), dialledEdge(3)], true],
    ['as the last standby, not to the relay', dialledEdge(2), 3, [dialledEdge(1), dialledEdge(3)], false],
    ['where no relay is named, by rank', dialledEdge(1), undefined, [dialledEdge(2)], true],
    ['where no relay is named, not to one of higher rank', dialledEdge(2), undefined, [dialledEdge(1)], false],
    ['once it left it, while another relays', dialledEdge(2, idle), 1, [dialledEdge(1)], true],
    ['once it left it, to none where no other relays', dialledEdge(2, idle), 1, [dialledEdge(1, idle)], false],
  ])('leaves it %s', (_, self, relay, others, expected) => {
    expect(relayed(self, relay, ...others)).toBe(expected);
  });
});
