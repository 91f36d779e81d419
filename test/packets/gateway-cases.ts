import fc from 'fast-check';
import type { Flow } from '../../src/core/map/access-rules.ts';
import { behindRoutes } from '../../src/core/map/prefix-maps.ts';
import { type Address, covers, isDefaultRoute } from '../../src/core/net/cidr.ts';
import { findKeptSources } from '../../src/core/routing/topology/kept-sources.ts';
import { assignedRoutes } from '../../src/core/routing/topology/route-owner.ts';
import { isDirect } from '../../src/core/routing/topology/via-connectors.ts';
import { evaluate, probedPort } from '../../src/core/rules/evaluate.ts';
import { accessRules, flowPorts, peersOf } from '../core/rules/generated-rules.ts';
import { network } from '../core/samples.ts';
import { type GatewayCase, type Place, places, publishedPort } from './gateway.ts';

/** A packet that begins a flow, what it meets at the gateway, and what the rules mean for it. */
export interface Attempt {
  /** As the packet is on the wire where it begins. */
  readonly packet: Flow & { readonly sourcePort: number };
  /** With the addresses of its connection in the tunnel. */
  readonly flow: Flow;
  readonly from: Device;
  /** Where it arrives if it is allowed, and its source there; null for any. */
  readonly to: Device;
  readonly arrivesFrom: Address | null;
  readonly isAllowed: boolean;
  /** What decides, for messages. */
  readonly why: string;
}

type Device = 'cpn0' | 'lan0' | 'up0' | 'docker0' | 'host';
type Traffic = Pick<Flow, 'protocol' | 'port' | 'isEcho'>;

const servicePort = 8787;

/** Pairs of networks of one family with a gateway of each kind: the second takes the place of the first. In half of them, only rules differ. */
export const gatewayPairs = fc.constantFrom(places[4], places[6]).chain((place) =>
  fc
    .record({ other: gatewayCases(place), gateway: gatewayCases(place), isSame: fc.boolean() })
    .map(({ other, gateway, isSame }) => ({
      before: isSame
        ? { ...gateway, map: { ...gateway.map, ...(other.map.rules && { rules: other.map.rules }) } }
        : other,
      gateway,
    })),
);

function gatewayCases(place: Place): fc.Arbitrary<GatewayCase> {
  return fc
    .record({
      rules: accessRules(place),
      peers: peersOf(place, place.routes),
      masquerade: fc.boolean(),
      isMapped: fc.boolean(),
      forwards: fc.boolean(),
      namesRelay: fc.boolean(),
      service: fc.option(fc.constantFrom(place.own, place.peerAt(2))),
    })
    .map(({ rules, peers, masquerade, isMapped, forwards, namesRelay, service }) => {
      const [first, ...others] = peers;
      if (first === undefined) throw new Error('a network without peers');
      const near = first.routes?.filter(
        (route) => !place.far.some((each) => !isDefaultRoute(route) && covers(route, each)),
      );
      const maps = isMapped ? place.maps : [];
      const self = { ...first, routes: [...new Set([...(near ?? []), ...maps.map(({ route }) => route)])] };
      const map = {
        ...network([self, ...others], { cidr: place.range, routes: place.routes }),
        rules,
        ...(namesRelay && { relay: self.id }),
      };
      return {
        map,
        self,
        masquerade,
        maps,
        forwards: forwards || self.type === 'connector',
        services: service === null ? [] : [{ address: service, port: servicePort }],
      };
    });
}

const ports = [...flowPorts, servicePort, publishedPort.outside, publishedPort.inside];
const traffic: readonly Traffic[] = [
  ...ports.flatMap((port): Traffic[] => [
    ...[port, port].map((each) => ({ protocol: 'tcp' as const, port: each })),
    { protocol: 'udp', port },
  ]),
  ...Array.from({ length: 8 }).flatMap((): Traffic[] => [
    { protocol: 'icmp', port: null },
    { protocol: 'icmp', port: null, isEcho: true },
    { protocol: 'other', port: null },
  ]),
];
const toPublished = (['tcp', 'udp'] as const).map((protocol): Traffic => ({ protocol, port: publishedPort.outside }));
const sourcePorts = [22, 80, 8080, 9, 40_001, 50_002];

/** Two sides of a gateway, and the addresses there. */
interface Sides {
  readonly weight: number;
  readonly from: Device;
  readonly sources: readonly Address[];
  readonly to: Device;
  readonly destinations: readonly Address[];
  readonly traffic?: readonly Traffic[];
}

/** Flows between any two sides of a gateway. Source ports are also those that rules name. */
export function attemptsOf(gateway: GatewayCase, count: number): fc.Arbitrary<readonly Attempt[]> {
  const sides = sidesOf(gateway).flatMap((each) => Array.from({ length: each.weight }, () => each));
  const perAttempt = 5;
  const size = perAttempt * count;
  // Far faster than an arbitrary for each part.
  return fc.uint16Array({ minLength: size, maxLength: size }).map((numbers) =>
    Array.from({ length: count }, (_, index) => index * perAttempt).flatMap((at) => {
      const pick = <Value>(list: readonly Value[], place: number) => list[(numbers[at + place] ?? 0) % list.length];
      const { from, sources, to, destinations, traffic: kinds = traffic } = pick(sides, 0) ?? nowhere;
      const [source, destination] = [pick(sources, 1), pick(destinations, 2)];
      const [kind, sourcePort] = [pick(kinds, 3), pick(sourcePorts, 4)];
      if (source === undefined || destination === undefined || kind === undefined || sourcePort === undefined)
        return [];
      // A port that leads to a container leads there from the LAN too.
      const isPublished = from === 'lan0' && kind.port === publishedPort.outside;
      return source === destination || isPublished
        ? []
        : judge(gateway, { from, source, to, destination }, kind, sourcePort);
    }),
  );
}

const nowhere: Sides = { weight: 0, from: 'host', sources: [], to: 'host', destinations: [] };

function sidesOf(gateway: GatewayCase): readonly Sides[] {
  const place = placeOf(gateway);
  const members = [...gateway.map.peers.slice(1).map(({ address }) => address), place.peerAt(99)];
  const tunnelled = [...members, ...place.far];
  const inLan = [...place.lan, ...place.mapped.map(([local]) => local)].filter((each) => each !== '192.168.1.1');
  const toLan = [...inLan, place.lanOwn, ...(gateway.maps.length > 0 ? place.mapped.map(([, route]) => route) : [])];
  const outside = [...place.internet, place.uplinkOwn];
  const own: Sides[] = [
    { weight: 8, from: 'cpn0', sources: tunnelled, to: 'host', destinations: [place.own] },
    { weight: 4, from: 'host', sources: [place.own], to: 'cpn0', destinations: tunnelled },
    { weight: 2, from: 'cpn0', sources: tunnelled, to: 'docker0', destinations: [place.own], traffic: toPublished },
  ];
  if (!gateway.forwards) return own;
  return [
    ...own,
    { weight: 10, from: 'cpn0', sources: tunnelled, to: 'lan0', destinations: toLan },
    { weight: 8, from: 'lan0', sources: inLan, to: 'cpn0', destinations: tunnelled },
    { weight: 4, from: 'lan0', sources: place.lan, to: 'host', destinations: [place.own] },
    { weight: 4, from: 'cpn0', sources: tunnelled, to: 'up0', destinations: outside },
    { weight: 2, from: 'up0', sources: place.internet, to: 'cpn0', destinations: tunnelled },
    { weight: 2, from: 'docker0', sources: [place.container], to: 'cpn0', destinations: tunnelled },
    { weight: 2, from: 'cpn0', sources: tunnelled, to: 'docker0', destinations: [place.own, place.container] },
    { weight: 4, from: 'cpn0', sources: members, to: 'cpn0', destinations: members },
  ];
}

interface Pair {
  readonly from: Device;
  readonly source: Address;
  readonly to: Device;
  readonly destination: Address;
}

function placeOf({ self }: GatewayCase): Place {
  return self.address === places[4].own ? places[4] : places[6];
}

/** What becomes of a packet, by the rules and by what the gateway serves. */
function judge(gateway: GatewayCase, pair: Pair, each: Traffic, sourcePort: number): Attempt {
  const place = placeOf(gateway);
  const { source, destination } = pair;
  const isPublished =
    pair.from === 'cpn0' &&
    destination === place.own &&
    (each.protocol === 'tcp' || each.protocol === 'udp') &&
    each.port === publishedPort.outside;
  const isOwn = destination === place.own || destination === place.lanOwn;
  const to = isPublished ? 'docker0' : isOwn ? 'host' : pair.to;
  const packet = { from: source, to: destination, ...each, sourcePort };
  const flow = { ...each, from: source, to: destination };
  const decide = (isAllowed: boolean, why: string, arrivesFrom: Address | null = source, from = source): Attempt => {
    return { packet, flow: { ...flow, from }, from: pair.from, to, arrivesFrom, isAllowed, why };
  };
  const byRules = (changed: Partial<Flow> = {}) => {
    const isService = gateway.services.some(
      ({ address, port }) => each.protocol === 'tcp' && destination === address && each.port === port,
    );
    // A host starts a handshake with these, and drops those that it receives.
    const isWake = each.protocol === 'udp' && each.port === probedPort && covers(place.range, destination);
    const isLeaving = pair.from === 'host' && pair.to === 'cpn0';
    return isService || (isWake && isLeaving) || evaluate(gateway.map, { ...flow, ...changed }).allowed;
  };
  const served = assignedRoutes(gateway.map, gateway.self);
  const behind = behindRoutes(served, gateway.maps).filter(({ route }) => !isDefaultRoute(route));
  const isServed = (address: Address) => behind.some(({ route }) => covers(route, address));
  if (`${pair.from} ${pair.to}` === 'lan0 host') {
    const isEntrance = gateway.self.type === 'connector' && isServed(source);
    return decide(isEntrance && byRules(), 'a packet of the LAN to this host');
  }
  // What is behind a host that is no connector counts as that host.
  if (gateway.self.type !== 'connector' && (pair.from === 'lan0' || pair.from === 'up0'))
    return decide(byRules({ from: place.own }), 'a packet through this host', source, place.own);
  /** The address in the network of a host of the LAN. */
  const routeOf = (local: Address) => {
    const found = place.mapped.find(([each]) => each === local);
    return found && gateway.maps.length > 0 ? found[1] : local;
  };
  switch (`${pair.from} ${destination === place.own && !isPublished ? 'host' : isPublished ? to : pair.to}`) {
    case 'cpn0 host':
      // The kernel answers the port by which peers are probed.
      if (each.protocol === 'tcp' && each.port === probedPort && covers(place.range, source))
        return decide(false, 'a probe gets a reset');
      return decide(byRules(), 'a packet to this host');
    case 'host cpn0':
      return decide(byRules(), 'a packet of this host');
    case 'cpn0 lan0': {
      const isLocal = place.mapped.some(([local]) => local === destination);
      if (isLocal || !isServed(destination)) return decide(false, 'no route of this host');
      const lanSource = gateway.masquerade && covers(place.range, source) ? lanAddressOf(place, destination) : source;
      const isHere = destination === place.lanOwn || destination === '10.201.1.1';
      const isMapped = place.mapped.some(([, route]) => route === destination);
      const why = isMapped ? 'a packet to a mapped LAN' : 'a packet to the LAN';
      return { ...decide(byRules(), why, isHere ? source : lanSource), to: isHere ? 'host' : to };
    }
    case 'lan0 cpn0': {
      const from = routeOf(source);
      if (!isServed(from) || (from === source && place.mapped.some(([local]) => local === source)))
        return decide(false, 'a sender in no route of this host');
      if (isServed(destination)) return decide(false, 'from LAN to LAN');
      return decide(
        byRules({ from }),
        from === source ? 'a packet of the LAN' : 'a packet of a mapped LAN',
        from,
        from,
      );
    }
    case 'cpn0 up0': {
      const isExit = served.some(isDefaultRoute);
      if (!isExit || destination === place.uplinkOwn) return decide(false, 'no exit');
      const isHidden = gateway.masquerade && covers(place.range, source);
      return decide(byRules(), 'a packet to the internet', isHidden ? place.uplinkOwn : source);
    }
    case 'up0 cpn0':
      return decide(false, 'a packet of the internet');
    case 'docker0 cpn0':
      return decide(byRules({ from: place.own }), 'a packet of a container', place.own, place.own);
    case 'cpn0 docker0':
      // The exit of a network masquerades also what goes to a container.
      return decide(isPublished && byRules(), 'a packet to a container', null);
    default: {
      const kept = findKeptSources(gateway.map, gateway.self).filter(({ from, to: toward }) => {
        return from.some((peer) => peer.address === source) && toward.some((peer) => peer.address === destination);
      });
      const { map, self } = gateway;
      const isRelayed = self.type === 'connector' && kept.length > 0;
      // The rules for a phone apply where it is reached, as it applies none.
      const receiver = map.peers.find((peer) => peer.address === destination);
      const isJudged = receiver?.via && isDirect(receiver, self, map);
      return isJudged ? decide(isRelayed && byRules(), 'a packet to a phone') : decide(isRelayed, 'a relayed packet');
    }
  }
}

function lanAddressOf(place: Place, destination: Address): Address {
  return place.mapped.some(([, route]) => route === destination) ? ('192.168.1.1' as Address) : place.lanOwn;
}
