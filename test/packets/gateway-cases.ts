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

/** Networks of both families with a gateway of each kind. */
export const gatewayCases: fc.Arbitrary<GatewayCase> = fc.constantFrom(places[4], places[6]).chain((place) =>
  fc
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
      const self = { ...first, routes: near ?? null };
      const map = {
        ...network([self, ...others], { cidr: place.range, routes: place.routes }),
        rules,
        ...(namesRelay && { relay: self.id }),
      };
      return {
        map,
        self,
        masquerade,
        maps: isMapped ? place.maps : [],
        forwards: forwards || self.type === 'connector',
        services: service === null ? [] : [{ address: service, port: servicePort }],
      };
    }),
);

const traffic: fc.Arbitrary<Traffic> = fc.oneof(
  { weight: 4, arbitrary: portsOf('tcp') },
  { weight: 2, arbitrary: portsOf('udp') },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Traffic[]>(
      { protocol: 'icmp', port: null },
      { protocol: 'icmp', port: null, isEcho: true },
      { protocol: 'other', port: null },
    ),
  },
);

function portsOf(protocol: 'tcp' | 'udp'): fc.Arbitrary<Traffic> {
  return fc.record({
    protocol: fc.constant(protocol),
    port: fc.constantFrom(...flowPorts, servicePort, publishedPort.outside, publishedPort.inside),
  });
}

/** Flows between any two sides of a gateway. Source ports are also those that rules name. */
export function attemptsOf(gateway: GatewayCase): fc.Arbitrary<Attempt> {
  const place = placeOf(gateway);
  const members = [...gateway.map.peers.slice(1).map(({ address }) => address), place.peerAt(99)];
  const tunnelled = [...members, ...place.far];
  const inLan = [...place.lan, ...place.mapped.map(([local]) => local)].filter((each) => each !== '192.168.1.1');
  const mapsRoute = gateway.maps.some(({ route }) => gateway.self.routes?.includes(route));
  const toLan = [...inLan, place.lanOwn, ...(mapsRoute ? place.mapped.map(([, route]) => route) : [])];
  const pairs = fc.oneof(
    { weight: 4, arbitrary: ends('cpn0', tunnelled, 'host', [place.own]) },
    { weight: 2, arbitrary: ends('host', [place.own], 'cpn0', tunnelled) },
    ...(gateway.forwards
      ? [
          { weight: 5, arbitrary: ends('cpn0', tunnelled, 'lan0', toLan) },
          { weight: 4, arbitrary: ends('lan0', inLan, 'cpn0', tunnelled) },
          { weight: 2, arbitrary: ends('cpn0', tunnelled, 'up0', [...place.internet, place.uplinkOwn]) },
          { weight: 1, arbitrary: ends('up0', place.internet, 'cpn0', tunnelled) },
          { weight: 1, arbitrary: ends('docker0', [place.container], 'cpn0', tunnelled) },
          { weight: 1, arbitrary: ends('cpn0', tunnelled, 'docker0', [place.own, place.container]) },
          { weight: 2, arbitrary: ends('cpn0', members, 'cpn0', members) },
        ]
      : []),
  );
  const sourcePort = fc.constantFrom(22, 80, 8080, 9, 40_001, 50_002);
  const toPublished = fc.constantFrom<Traffic>(
    ...(['tcp', 'udp'] as const).map((protocol) => ({ protocol, port: publishedPort.outside })),
  );
  const usual = fc.tuple(pairs, traffic, sourcePort);
  const published = fc.tuple(ends('cpn0', tunnelled, 'docker0', [place.own]), toPublished, sourcePort);
  return fc
    .oneof({ weight: 20, arbitrary: usual }, { weight: 1, arbitrary: published })
    .filter(([{ source, destination }]) => source !== destination)
    .map(([pair, each, port]) => judge(gateway, pair, each, port));
}

interface Pair {
  readonly from: Device;
  readonly source: Address;
  readonly to: Device;
  readonly destination: Address;
}

function ends(from: Device, sources: readonly Address[], to: Device, destinations: readonly Address[]) {
  return fc.record<Pair>({
    from: fc.constant(from),
    source: fc.constantFrom(...sources),
    to: fc.constant(to),
    destination: fc.constantFrom(...destinations),
  });
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
  // What is behind a host that is no connector counts as that host.
  if (gateway.self.type !== 'connector' && (pair.from === 'lan0' || pair.from === 'up0'))
    return decide(byRules({ from: place.own }), 'a packet through this host', source, place.own);
  const isServed = (address: Address) => behind.some(({ route }) => covers(route, address));
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
