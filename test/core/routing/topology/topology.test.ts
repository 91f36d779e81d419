import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparePeerIds, type NetworkMap, type Peer, type PeerFailure } from '../../../../src/core/map/model.ts';
import { covers, hostPrefix, overlaps } from '../../../../src/core/net/cidr.ts';
import { reachPeers, type Topology } from '../../../../src/core/routing/topology/topology.ts';
import { dialled, network, networks, peer, prefix } from '../../samples.ts';

const reach = (map: NetworkMap, self: Peer, changes = {}): Topology =>
  reachPeers({ map, self, acceptRoutes: true, failed: [], takesRange: true, ...changes });

const failures = (silent: number[], back: number[] = []): PeerFailure[] => [
  ...silent.map((id) => ({ peer: id, back: false })),
  ...back.map((id) => ({ peer: id, back: true })),
];

const allowedIps = (topology: Topology, id: number) => topology.reaches.find(({ peer }) => peer.id === id)?.allowedIps;

const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const origin = peer(2, { endpoint: dialled(2) });
const laptop = peer(3, { type: 'admin_device' });
const phone = peer(4, { type: 'admin_device' });
const office = network([connector, origin, laptop, phone]);

describe('the topology', () => {
  it('dials a peer that has an endpoint, and gives it its own address', () => {
    expect(allowedIps(reach(office, laptop), 2)).toEqual(['10.77.0.2/32']);
  });

  it('lets a peer without an endpoint dial in to a host that has one', () => {
    const [entry] = reach(office, origin).reaches.filter(({ peer }) => peer.id === 3);
    expect(entry).toMatchObject({ endpoint: null, allowedIps: ['10.77.0.3/32'], keepalive: null });
  });

  it('meets peers without endpoints through the active connector, with its routes', () => {
    const topology = reach(office, laptop);
    expect(topology.relay?.id).toBe(1);
    expect(allowedIps(topology, 1)).toEqual(['10.77.0.0/24', '10.77.0.1/32', '192.168.50.0/24']);
    expect(allowedIps(topology, 4)).toBeUndefined();
  });

  it('keeps a NAT open from behind it, and only from there', () => {
    expect(reach(office, laptop).reaches.map(({ keepalive }) => keepalive)).toEqual([25, 25]);
    expect(reach(office, origin).reaches.map(({ keepalive }) => keepalive)).toEqual([null, null, null]);
  });

  it('keeps the own address of a connector that does not answer: probes go there', () => {
    const second = peer(5, { type: 'connector', endpoint: dialled(5) });
    const map = network([connector, origin, laptop, second]);
    for (const self of [origin, laptop]) {
      const topology = reach(map, self, { failed: failures([1]) });
      expect(topology.relayedPeers).toEqual([]);
      expect(allowedIps(topology, 1)).toContain('10.77.0.1/32');
      expect(allowedIps(topology, 5)).not.toContain('10.77.0.1/32');
    }
  });

  it('has no connector for a route before it declines it', () => {
    const none = reach(network([origin, laptop]), laptop, { acceptRoutes: false });
    expect(none.routes).toMatchObject([{ via: null, hop: null, note: 'no connector' }]);
    expect(reach(office, laptop, { acceptRoutes: false }).routes).toMatchObject([{ hop: null, note: 'not accepted' }]);
  });

  it('needs no relay on a host with an endpoint', () => {
    expect(reach(office, origin).relay).toBeNull();
    expect(allowedIps(reach(office, origin), 1)).toEqual(['10.77.0.1/32', '192.168.50.0/24']);
  });

  it('never takes a route that it serves', () => {
    const second = peer(5, { type: 'connector', endpoint: dialled(5) });
    const topology = reach(network([connector, second]), connector);
    expect(allowedIps(topology, 5)).toEqual(['10.77.0.5/32']);
    expect(topology.routes).toMatchObject([{ prefix: '192.168.50.0/24', via: null, note: 'served here' }]);
  });

  it('takes a route from the other connector when it is limited to others itself', () => {
    const limited = peer(5, { type: 'connector', endpoint: dialled(5), routes: [] });
    expect(allowedIps(reach(network([connector, limited]), limited), 1)).toEqual(['10.77.0.1/32', '192.168.50.0/24']);
  });

  it('prefers the healthy, then the lowest id: an endpoint is no rank', () => {
    const hidden = peer(1, { type: 'connector' });
    const others = [6, 5].map((id) => peer(id, { type: 'connector', endpoint: dialled(id) }));
    const map = network([hidden, ...others, origin]);
    const via = (silent: number[], back: number[] = []) =>
      reach(map, origin, { failed: failures(silent, back) }).routes[0]?.via?.id;
    expect([via([]), via([1]), via([1, 5]), via([1, 5, 6])]).toEqual([1, 5, 6, 1]);
    expect([via([], [1]), via([5], [1]), via([5, 6], [1])]).toEqual([5, 6, 1]);
  });

  it('prefers among silent ones the one heard last, whatever their priorities', () => {
    const map = network([
      peer(1, { type: 'connector', endpoint: dialled(1), priority: 9 }),
      ...[5, 6].map((id) => peer(id, { type: 'connector', endpoint: dialled(id) })),
      origin,
    ]);
    const via = (heard: Readonly<Record<number, number>>) => {
      const failed = [1, 5, 6].map((id) => ({ peer: id, back: false, ...(heard[id] && { heard: heard[id] }) }));
      return reach(map, origin, { failed }).routes[0]?.via?.id;
    };
    expect([via({ 5: 1, 6: 2 }), via({ 5: 3, 6: 2 }), via({ 1: 1, 5: 2 }), via({})]).toEqual([6, 5, 5, 1]);
  });

  it('prefers the highest priority, then the connector that has served longest', () => {
    const ranks = [
      { id: 1, servingSince: 300 },
      { id: 5, servingSince: 100 },
      { id: 6, servingSince: 200, priority: 1 },
      { id: 7 },
    ];
    const connectors = ranks.map(({ id, ...rank }) => peer(id, { type: 'connector', endpoint: dialled(id), ...rank }));
    for (const self of [origin, laptop]) {
      const map = network([...connectors, self]);
      const order = [[], [6], [6, 5], [6, 5, 1]].map((silent) => {
        const { routes, relay } = reach(map, self, { failed: failures(silent) });
        return [routes[0]?.via?.id, self === laptop ? relay?.id : routes[0]?.via?.id];
      });
      expect(order).toEqual([6, 5, 1, 7].map((id) => [id, id]));
      expect(reach(map, self).routes[0]?.standby.map(({ id }) => id)).toEqual([5, 1, 7]);
    }
  });

  it('moves nothing to a newcomer, with a lower id or an endpoint, while the serving one is healthy', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 99 }), fc.boolean(), fc.nat({ max: 2 }), (id, isDialled, back) => {
        const serving = peer(50, { type: 'connector', servingSince: 1000 });
        const newcomer = peer(id < 50 ? id : id + 1, {
          type: 'connector',
          endpoint: isDialled ? dialled(id) : null,
          servingSince: 1001 + back,
        });
        const self = peer(200, { endpoint: dialled(200) });
        expect(reach(network([newcomer, serving, self]), self).routes[0]?.via?.id).toBe(50);
      }),
    );
  });

  it('hands packets for a connector that it cannot reach to the relay', () => {
    const hidden = peer(5, { type: 'connector', routes: [prefix('192.168.50.0/24')] });
    const relay = peer(6, { type: 'connector', endpoint: dialled(6), routes: [] });
    const topology = reach(network([hidden, relay, laptop]), laptop);
    expect(topology.routes[0]).toMatchObject({ via: { id: 5 }, hop: { id: 6 } });
    expect(allowedIps(topology, 6)).toContain('192.168.50.0/24');
  });

  it('gives the relay single addresses where the range cannot be taken', () => {
    const topology = reach(office, laptop, { takesRange: false });
    expect(allowedIps(topology, 1)).toEqual(['10.77.0.1/32', '10.77.0.4/32', '192.168.50.0/24']);
  });

  it('takes no routes where none are wanted', () => {
    const topology = reach(office, laptop, { acceptRoutes: false });
    expect(allowedIps(topology, 1)).toEqual(['10.77.0.0/24', '10.77.0.1/32']);
    expect(topology.routes[0]).toMatchObject({ hop: null, note: 'not accepted' });
  });

  it('takes a connector that is out of service for neither', () => {
    const out = peer(1, {
      type: 'connector',
      endpoint: dialled(1),
      routes: [],
      withdrawn: [prefix('192.168.50.0/24'), prefix('10.77.0.0/24')],
    });
    const second = peer(5, { type: 'connector', endpoint: dialled(5) });
    const topology = reach(network([out, second, laptop]), laptop);
    expect([topology.relay?.id, topology.routes[0]?.via?.id, topology.routes[0]?.standby]).toEqual([5, 5, []]);
    expect(reach(network([out, laptop]), laptop)).toMatchObject({ relay: null, routes: [{ note: 'no connector' }] });
    expect(reach(network([out, second]), out).routes[0]?.note).toBe('withdrawn here');
  });

  it('sends what is for a host that does not answer through the relay, and keeps listening', () => {
    const second = peer(5, { type: 'connector', endpoint: dialled(5) });
    const map = network([connector, second, laptop, phone]);
    const topology = reach(map, connector, { failed: failures([3]) });
    expect([allowedIps(topology, 3), allowedIps(topology, 5)]).toEqual([[], ['10.77.0.3/32', '10.77.0.5/32']]);
    expect(topology.relayedPeers.map(({ id }) => id)).toEqual([3]);
    const lost = reach(map, connector, { failed: failures([3, 5]) });
    expect([allowedIps(lost, 3), lost.relayedPeers]).toEqual([['10.77.0.3/32'], []]);
  });

  describe('with a relay that the map names', () => {
    const second = peer(5, { type: 'connector', endpoint: dialled(5) });
    const relayOf = (failed: readonly PeerFailure[], changes: Partial<NetworkMap> = {}) =>
      reach(network([connector, second, laptop, phone], { relay: 5, ...changes }), laptop, { failed }).relay?.id;

    it('uses it, whatever its rank', () => {
      const topology = reach(network([connector, second, laptop, phone], { relay: 5 }), laptop);
      expect([topology.relay?.id, topology.routes[0]?.via?.id]).toEqual([5, 1]);
      expect(allowedIps(topology, 5)).toEqual(['10.77.0.0/24', '10.77.0.5/32']);
    });

    it('uses it as soon as it answers again, which another connector that returns is not', () => {
      expect([relayOf([], { relay: 5 }), relayOf(failures([5])), relayOf(failures([], [5]))]).toEqual([5, 1, 5]);
      expect(relayOf(failures([], [1]), { relay: 1 })).toBe(1);
    });

    it('uses the best connector while it is silent, withdrawn or unreachable, and where it is none', () => {
      const withdrawn = { ...second, withdrawn: [prefix('10.77.0.0/24')] };
      const hidden = { ...second, endpoint: null };
      const others = [withdrawn, hidden].map((each) => relayOf([], { peers: [connector, each, laptop, phone] }));
      expect([relayOf(failures([5])), ...others]).toEqual([1, 1, 1]);
      expect([3, 4, 99, 'r'].map((relay) => relayOf([], { relay }))).toEqual([1, 1, 1, 1]);
    });
  });

  it('gives every prefix one owner, and every reachable peer exactly one path, for any failures', () => {
    const fails = fc.uniqueArray(fc.record({ peer: fc.integer({ min: 1, max: 12 }), back: fc.boolean() }), {
      selector: (failure) => failure.peer,
    });
    fc.assert(
      fc.property(networks, fc.nat(), fc.boolean(), fails, (map, at, takesRange, failed) => {
        const self = map.peers[at % map.peers.length] as Peer;
        const topology = reach(map, self, { takesRange, failed });
        const owned = topology.reaches.flatMap((entry) => entry.allowedIps);
        expect(new Set(owned).size).toBe(owned.length);
        // The one overlap there is: a peer's own address is more specific than the range of the relay.
        for (const [index, one] of owned.entries()) {
          for (const other of owned.slice(index + 1)) {
            if (overlaps(one, other)) expect(covers(map.cidr, one) && covers(map.cidr, other)).toBe(true);
          }
        }
        for (const other of map.peers) {
          if (other.id === self.id) continue;
          const direct = self.endpoint !== null || other.endpoint !== null;
          const ways = topology.reaches.filter(({ allowedIps: ips }) => ips.includes(hostPrefix(other.address)));
          const viaRelay = topology.relayedPeers.includes(other);
          if (direct) expect(ways.map(({ peer: path }) => path.id)).toEqual([viaRelay ? topology.relay?.id : other.id]);
          else if (topology.relay !== null && !takesRange)
            expect(ways.map(({ peer: path }) => path.id)).toEqual([topology.relay.id]);
          else expect(ways).toEqual([]);
        }
      }),
    );
  });

  it('depends on the order of nothing', () => {
    fc.assert(
      fc.property(networks, fc.nat(), (map, at) => {
        const self = map.peers[at % map.peers.length] as Peer;
        const turned = { ...map, peers: map.peers.toReversed() };
        expect(reach(turned, self)).toEqual(reach(map, self));
      }),
    );
  });
});

it('ids have one order on every host: numbers by size, then strings by code unit', () => {
  const sorted = [2, 9, 10, 100, '10', '9', 'B', 'a', 'ä'];
  const shuffled = fc.shuffledSubarray(sorted, { minLength: sorted.length, maxLength: sorted.length });
  fc.assert(
    fc.property(shuffled, (ids) => {
      expect(ids.toSorted(comparePeerIds)).toEqual(sorted);
    }),
  );
  expect([comparePeerIds(7, 7), comparePeerIds('a', 'a')]).toEqual([0, 0]);
});
