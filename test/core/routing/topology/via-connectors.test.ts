import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NetworkMap, Peer, PeerFailure } from '../../../../src/core/map/model.ts';
import { hostPrefix } from '../../../../src/core/net/cidr.ts';
import { reachPeers, type Topology } from '../../../../src/core/routing/topology/topology.ts';
import { dialled, network, networks, peer } from '../../samples.ts';

const reach = (map: NetworkMap, self: Peer, failed: readonly PeerFailure[] = [], changes = {}): Topology =>
  reachPeers({ map, self, acceptRoutes: true, failed, takesRange: true, ...changes });
const silent = (...ids: number[]): PeerFailure[] => ids.map((id) => ({ peer: id, back: false }));

/** The peers that get packets for an address of their own or of another peer. */
const ownersOf = ({ reaches }: Topology, of: Peer) =>
  reaches.filter(({ allowedIps }) => allowedIps.includes(hostPrefix(of.address))).map(({ peer: { id } }) => id);

const edge = peer(1, { type: 'connector', endpoint: dialled(1), servingSince: 1 });
const second = peer(2, { type: 'connector', endpoint: dialled(2), servingSince: 2 });
const origin = peer(3, { endpoint: dialled(3) });
const laptop = peer(4, { type: 'admin_device' });
const phone = peer(5, { type: 'admin_device', via: { connector: 2 } });
const office = network([edge, second, origin, laptop, phone]);

describe('a peer that dials a connector alone', () => {
  it('is direct at that connector, and reached through it by every other host, whatever connector is active', () => {
    expect(ownersOf(reach(office, second), phone)).toEqual([5]);
    for (const self of [edge, origin, laptop]) {
      const topology = reach(office, self);
      expect(ownersOf(topology, phone)).toEqual([2]);
      expect(topology.reaches.map((each) => each.peer.id)).not.toContain(5);
      expect(topology.routes[0]?.via?.id).toBe(self === edge ? undefined : 1);
    }
    expect(reach(office, origin).relay).toBeNull();
  });

  it('stays with its connector when routes and the relay move to another', () => {
    for (const self of [origin, laptop]) {
      const topology = reach(office, self, silent(1));
      expect([ownersOf(topology, phone), topology.routes[0]?.via?.id]).toEqual([[2], 2]);
    }
  });

  it('is reached through the relay while this host does not reach its connector', () => {
    expect(ownersOf(reach(office, origin, silent(2)), phone)).toEqual([1]);
    expect(reach(office, laptop, silent(2)).relay?.id).toBe(1);
    expect(ownersOf(reach(office, laptop, silent(2)), phone)).toEqual([]);
    expect(ownersOf(reach(office, laptop, silent(2), { takesRange: false }), phone)).toEqual([1]);
    // A relay that is silent too is no better.
    expect(ownersOf(reach(office, origin, silent(1, 2)), phone)).toEqual([2]);
  });

  it('is not handed by one connector to another, even if both miss it', () => {
    expect(ownersOf(reach(office, edge, silent(2)), phone)).toEqual([2]);
    const missing = reach(office, second, silent(5));
    expect([ownersOf(missing, phone), missing.relayedPeers]).toEqual([[5], []]);
  });

  it('is left by one connector to no third one, though its own does not answer', () => {
    const third = peer(6, { type: 'connector', endpoint: dialled(6), servingSince: 3 });
    const map = network([edge, second, third, origin, phone]);
    for (const self of [edge, third]) expect(ownersOf(reach(map, self, silent(2)), phone)).toEqual([2]);
    expect(ownersOf(reach(map, origin, silent(2)), phone)).toEqual([1]);
  });

  it('whose connector is not known is direct at no connector without an endpoint, which it cannot dial', () => {
    const blind = { ...edge, endpoint: null };
    const unknown = { ...phone, via: { connector: null } };
    const map = network([blind, second, origin, unknown]);
    expect(ownersOf(reach(map, blind), unknown)).not.toContain(5);
    expect(ownersOf(reach(map, second), unknown)).toEqual([5]);
  });

  it('is left to the relay, and to connectors that it may dial, if the network has no such connector', () => {
    for (const connector of [9, null, 3]) {
      const map = network([edge, second, origin, laptop, { ...phone, via: { connector } }]);
      const own = map.peers.at(-1) as Peer;
      expect(ownersOf(reach(map, origin), own)).toEqual([1]);
      expect(reach(map, origin).relay?.id).toBe(1);
      expect(ownersOf(reach(map, laptop), own)).toEqual([]);
      expect(reach(map, laptop).relay?.id).toBe(1);
      expect([ownersOf(reach(map, edge), own), ownersOf(reach(map, second), own)]).toEqual([[5], [5]]);
      // Silent here, it may be at the other connector.
      expect(ownersOf(reach(map, edge, silent(5)), own)).toEqual([2]);
    }
  });

  it('keeps its own routes out of the tunnel of no host', () => {
    const map = network([{ ...edge, routes: [] }, second, origin, phone]);
    expect(reach(map, origin).reaches.find(({ peer: { id } }) => id === 2)?.allowedIps).toEqual([
      '10.77.0.2/32',
      '10.77.0.5/32',
      '192.168.50.0/24',
    ]);
  });

  it('is reached from every host without a circle, for any networks and failures', () => {
    const failures = fc.array(fc.uniqueArray(fc.integer({ min: 1, max: 14 }), { maxLength: 6 }), {
      minLength: 14,
      maxLength: 14,
    });
    fc.assert(
      fc.property(networks, failures, (made, failed) => {
        const dials = peer(13, { type: 'connector', endpoint: dialled(13) });
        const own = peer(14, { type: 'admin_device', via: { connector: 13 } });
        const map = { ...made, peers: [...made.peers, dials, own] };
        const topologies = new Map(
          map.peers.map((self, at) => [self.id, reach(map, self, silent(...(failed[at] ?? [])))]),
        );
        const next = (id: Peer['id']) => {
          const topology = topologies.get(id);
          const [exact] = topology ? ownersOf(topology, own) : [];
          return exact ?? topology?.relay?.id;
        };
        for (const { id } of map.peers) {
          if (id === own.id) continue;
          const way = [id];
          while (way.at(-1) !== own.id && way.length < 5) way.push(next(way.at(-1) as number) ?? 'nowhere');
          expect(way.slice(-2)).toEqual([13, 14]);
        }
        const owned = [...topologies.values()].map(({ reaches }) => reaches.flatMap(({ allowedIps }) => allowedIps));
        for (const prefixes of owned) expect(new Set(prefixes).size).toBe(prefixes.length);
      }),
    );
  });
});

it('a host that dials a connector alone leads no packet to its own address into the tunnel', () => {
  const topology = reach({ ...office, peers: [edge, second, origin, laptop, phone] }, phone);
  expect(ownersOf(topology, phone)).toEqual([]);
  expect(reach(office, phone, [], { takesRange: false }).reaches.flatMap(({ allowedIps }) => allowedIps)).not.toContain(
    hostPrefix(phone.address),
  );
});
