import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NetworkMap, Peer, PeerId } from '../../../../src/core/map/model.ts';
import { covers, hostPrefix, overlaps } from '../../../../src/core/net/cidr.ts';
import { probePrefixOf } from '../../../../src/core/paths/probe-address.ts';
import type { NetworkView } from '../../../../src/core/routing/topology/route-owner.ts';
import { reachPeers } from '../../../../src/core/routing/topology/topology.ts';
import { mayHavePath } from '../../../../src/core/routing/topology/via-connectors.ts';
import { dialled, network, networks, peer, prefix } from '../../samples.ts';

const relay = peer(1, { type: 'connector', endpoint: dialled(1) });
const [laptop, phone] = [peer(3), peer(4)];
const office = network([relay, laptop, phone], { relay: 1 });
const reach = (map: NetworkMap, self: Peer, paths: readonly PeerId[], changes: Partial<NetworkView> = {}) =>
  reachPeers({ map, self, acceptRoutes: true, failed: [], takesRange: true, paths, ...changes });
const ownersOf = (map: NetworkMap, self: Peer, paths: readonly PeerId[], changes: Partial<NetworkView> = {}) =>
  Object.fromEntries(reach(map, self, paths, changes).reaches.map(({ peer: to, allowedIps }) => [to.id, allowedIps]));

describe('a peer with a direct path', () => {
  it('has its address and its probe address, a learned endpoint, and keepalives', () => {
    const { reaches, relay: via } = reach(office, laptop, [4]);
    expect(reaches.find((each) => each.peer === phone)).toEqual({
      ...{ peer: phone, endpoint: null, keepalive: 25 },
      allowedIps: [hostPrefix(phone.address), probePrefixOf(7, 4)],
    });
    expect(via).toBe(relay);
    expect(reach(office, laptop, []).reaches.map((each) => each.peer.id)).toEqual([1]);
  });

  it('leaves the relay what it has, but for its own address in a list of addresses', () => {
    expect(ownersOf(office, laptop, [4])[1]).toEqual(ownersOf(office, laptop, [])[1]);
    expect(ownersOf(office, laptop, [], { takesRange: false })[1]).toContain('10.77.0.4/32');
    expect(ownersOf(office, laptop, [4], { takesRange: false })[1]).not.toContain('10.77.0.4/32');
  });

  it('carries its routes too: in a closed network it refuses its peer’s packets from the relay', () => {
    const gateway = peer(5, { type: 'connector', routes: [prefix('192.168.60.0/24')] });
    const map = network([{ ...relay, routes: [] }, laptop, gateway], { routes: [prefix('192.168.60.0/24')], relay: 1 });
    const self = map.peers[1] as Peer;
    expect(ownersOf(map, self, [])[1]).toContain('192.168.60.0/24');
    const found = ownersOf(map, self, [5]);
    expect(found[5]).toContain('192.168.60.0/24');
    expect(found[1]).not.toContain('192.168.60.0/24');
    expect(reach(map, self, [5]).relay?.id).toBe(1);
  });

  it.each<[string, Peer, Peer]>([
    ['that has an endpoint', laptop, peer(4, { endpoint: dialled(4) })],
    ['of a host with an endpoint', peer(3, { endpoint: dialled(3) }), phone],
    ['that dials one connector', laptop, peer(4, { via: { connector: 1 } })],
  ])('is none %s', (_, self, other) => {
    const map = network([relay, self, other], { relay: 1 });
    expect(reach(map, self, [4])).toEqual(reach(map, self, []));
  });

  it('is none in a network without an id, and not this host itself or a peer that is not listed', () => {
    const anonymous = { ...office, id: null };
    expect(reach(anonymous, laptop, [4])).toEqual(reach(anonymous, laptop, []));
    expect(reach(office, laptop, [3, 99])).toEqual(reach(office, laptop, []));
  });

  it('has each prefix alone, and its traffic, while all others keep their owners, in any network', () => {
    const chosen = fc.uniqueArray(fc.integer({ min: 1, max: 12 }));
    fc.assert(
      fc.property(networks, fc.nat(), fc.boolean(), chosen, (map, at, takesRange, paths) => {
        const self = map.peers[at % map.peers.length] as Peer;
        const before = reach(map, self, [], { takesRange });
        const after = reach(map, self, paths, { takesRange });
        const owned = after.reaches.flatMap((entry) => entry.allowedIps);
        expect(new Set(owned).size).toBe(owned.length);
        for (const [index, one] of owned.entries()) {
          for (const other of owned.slice(index + 1)) {
            if (overlaps(one, other)) expect(covers(map.cidr, one) && covers(map.cidr, other)).toBe(true);
          }
        }
        const usable = map.peers.filter((each) => paths.some((id) => id === each.id) && mayHavePath(each, self, map));
        for (const each of usable) {
          const owners = after.reaches.filter(({ allowedIps }) => allowedIps.includes(hostPrefix(each.address)));
          expect(owners.map((owner) => owner.peer.id)).toEqual([each.id]);
        }
        expect([after.relay, after.relayedPeers]).toEqual([before.relay, before.relayedPeers]);
        // Without its path, each prefix of a path is the relay's, or no peer's without a relay.
        const moved = usable.flatMap((each) => after.reaches.find((entry) => entry.peer === each)?.allowedIps ?? []);
        for (const { peer: to, allowedIps } of before.reaches) {
          const left = after.reaches.find((entry) => entry.peer === to)?.allowedIps ?? [];
          expect(allowedIps.filter((each) => !moved.includes(each))).toEqual(left);
          expect(to === before.relay || left.length === allowedIps.length).toBe(true);
        }
      }),
    );
  });
});
