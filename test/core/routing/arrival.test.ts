import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NetworkMap, Peer, PeerFailure } from '../../../src/core/map/model.ts';
import { type Address, covers, lengthOf } from '../../../src/core/net/cidr.ts';
import { reachPeers, type Topology } from '../../../src/core/routing/topology/topology.ts';
import { address, dialled, network, peer } from '../samples.ts';

/** Two hosts between which no packet goes outside the tunnel. */
type Cut = readonly [Peer, Peer];

/** What each host makes of a network of which some paths are cut, once everybody saw as much of it as it can. */
class World {
  readonly map: NetworkMap;
  readonly #cuts: readonly Cut[];
  readonly #topologies: ReadonlyMap<Peer, Topology>;

  constructor(map: NetworkMap, cuts: readonly Cut[]) {
    this.map = map;
    this.#cuts = cuts;
    this.#topologies = new Map(
      map.peers.map((self) => {
        const failed = this.#failuresOf(self);
        return [self, reachPeers({ map, self, acceptRoutes: true, failed, takesRange: true })];
      }),
    );
  }

  isCut(one: Peer, other: Peer): boolean {
    return this.#cuts.some((cut) => cut.includes(one) && cut.includes(other));
  }

  /** Everybody watches the connectors; a connector also notices which hosts it does not hear. */
  #failuresOf(self: Peer): PeerFailure[] {
    return this.map.peers
      .filter((other) => this.isCut(self, other) && (other.type === 'connector' || self.type === 'connector'))
      .map((other) => ({ peer: other.id, back: false }));
  }

  /** The peer that a host hands a packet to, and takes a packet from: the owner of the longest prefix. */
  owner(at: Peer, destination: Address): Peer | null {
    const owned = this.#topologies
      .get(at)
      ?.reaches.flatMap(({ peer: to, allowedIps }) =>
        allowedIps.filter((prefix) => covers(prefix, destination)).map((prefix) => ({ to, length: lengthOf(prefix) })),
      );
    return owned?.toSorted((a, b) => b.length - a.length)[0]?.to ?? null;
  }

  /** The way of a packet, sender first; null when it is lost. A relay gives what it relays its own address. */
  walk(from: Peer, destination: Address): Peer[] | null {
    const way = [from];
    let source = from.address;
    for (let at = from; at.address !== destination; ) {
      const next = this.owner(at, destination);
      if (next === null || this.isCut(at, next) || this.owner(next, source) !== at) return null;
      const isForLan = next.type === 'connector' && !covers(this.map.cidr, destination);
      way.push(next);
      if (way.length > 64) throw new Error('the packet goes in a circle');
      if (isForLan) return way;
      if (next.address !== destination && next.type !== 'connector') return null;
      const wasRelayed = this.map.peers.some((each) => each.type === 'connector' && each.address === source);
      const isDetoured = this.#topologies.get(next)?.relayedPeers.some((each) => each.address === destination);
      if (wasRelayed && isDetoured) return null;
      source = next.address;
      at = next;
    }
    return way;
  }

  /** True when an answer comes back: the relays know what they changed, and undo it hop by hop. */
  answers(from: Peer, destination: Address): boolean {
    const way = this.walk(from, destination);
    if (way === null) return false;
    return way.toReversed().every((at, index, back) => {
      const next = back[index + 1];
      if (next === undefined) return true;
      // The answer carries the replying peer’s address, and goes back to the peer that sent the packet.
      return !this.isCut(at, next) && this.owner(at, next.address) === next && this.owner(next, destination) === at;
    });
  }
}

/** Networks with two or three connectors that can be dialled, and hosts of every kind. */
const worlds = fc
  .record({
    connectors: fc.integer({ min: 2, max: 3 }),
    hosts: fc.array(fc.boolean(), { minLength: 2, maxLength: 6 }),
  })
  .map(({ connectors, hosts }) =>
    network([
      ...Array.from({ length: connectors }, (_, at) => peer(at + 1, { type: 'connector', endpoint: dialled(at + 1) })),
      ...hosts.map((canBeDialled, at) =>
        peer(at + 10, { type: 'admin_device', endpoint: canBeDialled ? dialled(at + 10) : null }),
      ),
    ]),
  );

const server = address('192.168.50.10');

describe('packets arrive', () => {
  it('they do, and so do their answers, between all hosts and to every route', () => {
    fc.assert(
      fc.property(worlds, (map) => {
        const world = new World(map, []);
        for (const from of map.peers) {
          for (const to of map.peers) if (to !== from) expect(world.answers(from, to.address)).toBe(true);
          if (from.type !== 'connector') expect(world.answers(from, server)).toBe(true);
        }
      }),
    );
  });

  it('they do while one host and one connector are cut off from each other, though hosts differ in which connector lives', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), fc.nat(), (map, connectorAt, hostAt) => {
        const connectors = map.peers.filter(({ type }) => type === 'connector');
        const hosts = map.peers.filter(({ type }) => type !== 'connector');
        const connector = connectors[connectorAt % connectors.length] as Peer;
        const host = hosts[hostAt % hosts.length] as Peer;
        const world = new World(map, [[connector, host]]);
        for (const from of hosts) {
          for (const to of hosts) if (to !== from) expect(world.answers(from, to.address)).toBe(true);
          expect(world.answers(from, server)).toBe(true);
        }
        // The connector reaches the host through another one; the host’s probe of this connector fails.
        expect(world.answers(connector, host.address)).toBe(true);
      }),
    );
  });

  it('or end: two connectors without an answer from a host do not forward its packets to each other in a loop', () => {
    const [one, two] = [1, 2].map((id) => peer(id, { type: 'connector', endpoint: dialled(id) })) as [Peer, Peer];
    const [asleep, awake] = [10, 11].map((id) => peer(id, { type: 'admin_device' })) as [Peer, Peer];
    const world = new World(network([one, two, asleep, awake]), [
      [one, asleep],
      [two, asleep],
    ]);
    expect(world.walk(awake, asleep.address)).toBeNull();
  });
});
