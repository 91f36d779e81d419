import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NetworkMap, Peer, PeerFailure } from '../../../src/core/map/model.ts';
import { type Address, covers, lengthOf } from '../../../src/core/net/cidr.ts';
import { keepsSource } from '../../../src/core/routing/topology/kept-sources.ts';
import { reachPeers, type Topology } from '../../../src/core/routing/topology/topology.ts';
import { address, dialled, network, peer } from '../samples.ts';

/** Two hosts between which no packet goes outside the tunnel. */
type Cut = readonly [Peer, Peer];

/** What each host makes of a network of which some paths are cut, once everybody saw as much of it as it can. */
class World {
  readonly map: NetworkMap;
  readonly #cuts: readonly Cut[];
  readonly #topologies: ReadonlyMap<Peer, Topology>;

  /** @param paths pairs of hosts with a direct path that both use */
  constructor(map: NetworkMap, cuts: readonly Cut[], paths: readonly Cut[] = []) {
    this.map = map;
    this.#cuts = cuts;
    this.#topologies = new Map(
      map.peers.map((self) => {
        const failed = this.#failuresOf(self);
        const used = paths.filter((path) => path.includes(self)).flat();
        const view = { map, self, acceptRoutes: true, failed, takesRange: true, paths: used.map(({ id }) => id) };
        if (!self.via) return [self, reachPeers(view)];
        // A device has one peer, with the whole range.
        const reaches = map.peers
          .filter(({ id }) => id === self.via?.connector)
          .map((at) => ({ peer: at, endpoint: at.endpoint, allowedIps: [map.cidr, ...map.routes], keepalive: 25 }));
        return [self, { reaches, routes: [], relay: null, relayedPeers: [] }];
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

  /** True if a connector forwards a packet of this host with its address. */
  keeps(at: Peer, source: Address, destination: Address): boolean {
    const isDetoured = this.#topologies.get(at)?.relayedPeers.some((each) => each.address === destination);
    const [from, to] = [source, destination].map((sought) => this.map.peers.find((each) => each.address === sought));
    return !isDetoured && from !== undefined && to !== undefined && keepsSource(this.map, at, from, to);
  }

  /** The address with which a packet arrives; null when it is lost. */
  sourceAt(from: Peer, destination: Address): Address | null {
    return this.walk(from, destination)?.at(-1)?.source ?? null;
  }

  /** The way of a packet, sender first, with its source at each hop; null when it is lost. */
  walk(from: Peer, destination: Address): readonly { readonly at: Peer; readonly source: Address }[] | null {
    let source = from.address;
    const way = [{ at: from, source }];
    for (let at = from; at.address !== destination; ) {
      const next = this.owner(at, destination);
      if (next === null || this.isCut(at, next) || this.owner(next, source) !== at) return null;
      const isForLan = next.type === 'connector' && !covers(this.map.cidr, destination);
      way.push({ at: next, source });
      if (way.length > 64) throw new Error('the packet goes in a circle');
      if (isForLan) return way;
      if (next.address !== destination && next.type !== 'connector') return null;
      const wasRelayed = this.map.peers.some((each) => each.type === 'connector' && each.address === source);
      const isDetoured = this.#topologies.get(next)?.relayedPeers.some((each) => each.address === destination);
      if (wasRelayed && isDetoured) return null;
      if (next.address !== destination && !this.keeps(next, source, destination)) source = next.address;
      at = next;
    }
    return way;
  }

  /** True when an answer comes back: the relays know what they changed, and undo it hop by hop. */
  answers(from: Peer, destination: Address): boolean {
    const way = this.walk(from, destination)?.toReversed();
    if (way === undefined) return false;
    return way.every(({ at, source }, index) => {
      const next = way[index + 1]?.at;
      if (next === undefined) return true;
      // The answer carries the replying peer’s address, and goes to the source of the packet.
      return !this.isCut(at, next) && this.owner(at, source) === next && this.owner(next, destination) === at;
    });
  }
}

const follows = { followsRelay: true } as const;

/**
 * Networks with two or three connectors that can be dialled, and hosts of every kind, new and old.
 * The service names a relay, or none, or a peer that is no connector.
 */
const worlds = fc
  .record({
    connectors: fc.integer({ min: 2, max: 3 }),
    hosts: fc.array(fc.record({ canBeDialled: fc.boolean(), isNew: fc.boolean() }), { minLength: 2, maxLength: 6 }),
    relay: fc.option(fc.constantFrom(1, 2, 3, 10), { nil: undefined }),
    devices: fc.array(fc.constantFrom(1, 2), { maxLength: 2 }),
  })
  .map(({ connectors, hosts, relay, devices }) =>
    network(
      [
        ...Array.from({ length: connectors }, (_, at) =>
          peer(at + 1, { type: 'connector', endpoint: dialled(at + 1), ...follows }),
        ),
        ...hosts.map(({ canBeDialled, isNew }, at) =>
          peer(at + 10, {
            type: 'admin_device',
            endpoint: canBeDialled ? dialled(at + 10) : null,
            ...(isNew && follows),
          }),
        ),
        ...devices.map((connector, at) => peer(at + 20, { type: 'admin_device', via: { connector } })),
      ],
      relay === undefined ? {} : { relay },
    ),
  );

/** True of a host that has no endpoint, and is no device with a profile. */
const isHidden = ({ endpoint, via }: Peer) => endpoint === null && via === undefined;

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
        const hosts = map.peers.filter(({ type, via }) => type !== 'connector' && via === undefined);
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

  it('and their answers do over direct paths, with the address of their sender, while all others keep their way', () => {
    fc.assert(
      fc.property(worlds, fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 4 }), (map, chosen) => {
        const hidden = map.peers.filter(isHidden);
        fc.pre(hidden.length > 1);
        const paths = chosen
          .map(([one, other]) => [hidden[one % hidden.length], hidden[other % hidden.length]] as unknown as Cut)
          .filter(([one, other]) => one !== other);
        const [before, world] = [new World(map, []), new World(map, [], paths)];
        for (const from of map.peers) {
          for (const to of map.peers.filter((each) => each !== from)) {
            expect(world.answers(from, to.address)).toBe(true);
            const isDirect = paths.some((path) => path.includes(from) && path.includes(to));
            const way = isDirect ? [from, to] : before.walk(from, to.address)?.map(({ at }) => at);
            expect(world.walk(from, to.address)?.map(({ at }) => at)).toEqual(way);
            if (isDirect) expect(world.sourceAt(from, to.address)).toBe(from.address);
          }
        }
      }),
    );
  });

  it('with the address of their sender over the relay that the map names, between all hosts without an endpoint that follow it', () => {
    fc.assert(
      fc.property(worlds, (map) => {
        const world = new World(map, []);
        const isNamed = map.peers.some(({ id, type }) => id === map.relay && type === 'connector');
        const hidden = map.peers.filter(isHidden);
        for (const from of hidden) {
          for (const to of hidden.filter((each) => each !== from)) {
            expect(world.sourceAt(from, to.address) === from.address).toBe(isNamed && to.followsRelay === true);
          }
        }
      }),
    );
  });

  it('with the address of their sender from a device, and to it, over the connector that it dials', () => {
    fc.assert(
      fc.property(worlds, (map) => {
        const world = new World(map, []);
        const devices = map.peers.filter(({ via }) => via !== undefined);
        for (const device of map.relay === undefined ? [] : devices) {
          for (const other of map.peers.filter(({ via }) => via === undefined)) {
            expect(world.sourceAt(other, device.address)).toBe(other.address);
            const isKept = other.followsRelay || other.id === device.via?.connector;
            expect(world.sourceAt(device, other.address) === device.address).toBe(isKept === true);
          }
        }
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
