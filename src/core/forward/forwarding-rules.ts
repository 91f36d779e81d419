import type { Underlay } from '../host-state/actual.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import type { Options } from '../map/options.ts';
import { behindRoutes, isMapped, type PrefixMap, widestMaps } from '../map/prefix-maps.ts';
import { covers, familyOf, hostPrefix, isDefaultRoute, lengthOf, type Prefix } from '../net/cidr.ts';
import { isPlainLinkName } from '../net/link-name.ts';
import { specialRanges } from '../net/special-ranges.ts';
import { findKeptSources } from '../routing/topology/kept-sources.ts';
import { assignedRoutes } from '../routing/topology/route-owner.ts';
import { isDirect } from '../routing/topology/via-connectors.ts';
import { forwardRulesOf, refusePassing } from './forward-rule.ts';
import type { Ingress } from './ingress.ts';
import { mapInvalid } from './invalid-packets.ts';
import { findEntrances, linkFinder } from './links-toward.ts';
import { widest } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

export interface Forwarding {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly options: Pick<Options, 'masquerade' | 'acceptRoutes' | 'maps'>;
  /** Peers that do not answer here, and are reached through another connector. */
  readonly relayedPeers: readonly Peer[];
  readonly underlay: Underlay;
  /** The interfaces that its routes use. */
  readonly ingress: readonly Ingress[];
  /** Served routes for which another connector is in service; absent for none. */
  readonly standby?: readonly Prefix[];
  /** Rules that precede all rules that accept packets. */
  readonly deadlines?: readonly PacketRule[];
}

/**
 * The rules of a connector, in order. Only advertised prefixes are forwarded. Packets of a known
 * connection must match the same prefixes as its first packet, so it ends with its route.
 *
 * Relayed packets get this connector's address unless `findKeptSources` keeps the sender's.
 * Connections from its LAN get it unless masquerading is off. A host accepts from a connector only
 * that address and what it reaches through that connector, and hosts may disagree for a while.
 */
export function forwardingRules({
  link,
  map,
  self,
  options,
  relayedPeers,
  underlay,
  ingress,
  standby = [],
  deadlines = [],
}: Forwarding): readonly PacketRule[] {
  const { masquerade, acceptRoutes } = options;
  // In a closed network, a packet in the tunnel has its true source.
  const isClosed = map.rules !== undefined;
  const hidesLan = masquerade && !isClosed;
  const linksToward = linkFinder(underlay);
  const linksOf = (routes: readonly Prefix[], more: readonly string[]) =>
    [...new Set([...more, ...routes.flatMap(linksToward)])].filter(isPlainLinkName).toSorted();
  const ofFamily = (route: Prefix) => familyOf(route) === familyOf(map.cidr);
  const assigned = assignedRoutes(map, self);
  const served = assigned.filter(ofFamily);
  const elsewhere = acceptRoutes ? map.routes.filter((route) => ofFamily(route) && !assigned.includes(route)) : [];
  // If the range is unknown, the network's addresses are listed singly.
  const range = lengthOf(map.cidr) < 32 ? [map.cidr] : widest([map.cidr, ...addresses(map.peers)]);
  const there = widest([...range, ...elsewhere]);
  // A default route is for connections that begin within the network.
  const members = widest([...range, ...elsewhere.filter((route) => !isDefaultRoute(route))]);
  // Only the original destination of a connection from the tunnel is in a mapped route. All other
  // addresses behind this host are local.
  const behind = behindRoutes(served, options.maps);
  const maps = widestMaps(behind);
  const lans = behind.filter(({ route }) => !isDefaultRoute(route));
  const unmapped = widest(lans.filter((each) => !isMapped(each)).map(({ route }) => route));
  const begins = widest(lans.map(({ route }) => route));
  const locals = widest(lans.map(({ local }) => local));
  // Of connectors, hosts accept the source of a LAN from the one in service. Devices have only one.
  const isOnStandby = ({ route }: PrefixMap) => isClosed && standby.includes(route);
  const onStandby = widest(lans.filter(isOnStandby).map(({ local }) => local));
  const notRefused = {
    from: widest(lans.filter((each) => !isOnStandby(each)).map(({ local }) => local)),
    to: addresses(map.peers.filter((peer) => peer.via && isDirect(peer, self, map))),
  };
  const near = widest(served.filter((route) => !isDefaultRoute(route)));
  /** What lies in these routes, and is reached through the tunnel. */
  const nested = members.filter((inner) => near.some((outer) => covers(outer, inner)));
  const exits = widest(served.filter(isDefaultRoute));
  // A VPN may have put its two half routes before the host's default route.
  const halves = underlay.routed.filter(({ prefix }) => isDefaultRoute(prefix)).map(({ link }) => link);
  const doors = exits.length === 0 ? [] : linksOf(exits, halves);
  const connectors = map.peers.filter(({ id, type }) => type === 'connector' && id !== self.id);
  const relays = relayedPeers.length > 0 && connectors.length > 0;
  const outside = linksOf(
    behind.map(({ local }) => local),
    underlay.uplinks,
  );
  const inward = begins.length === 0 ? null : { from: members, to: begins };
  const plain = unmapped.length === 0 ? null : { from: members, to: unmapped };
  const except = [...specialOf(map.cidr), ...maps.map(({ local }) => local)];
  const exit = doors.length === 0 ? null : { by: doors, from: members, to: exits, except };
  const outward = locals.length === 0 ? null : { from: locals, to: there };
  const plainLan = widest([...unmapped, ...exits]);
  const known = widest([...members, ...begins]);
  // Another connector delivers packets for these peers. It accepts their addresses only from them.
  const kept = findKeptSources(map, self)
    .map((each) => ({ ...each, to: each.to.filter((peer) => !relayedPeers.includes(peer)) }))
    .filter(({ to }) => to.length > 0);
  const relayed = isClosed
    ? kept.map(({ from, to }) => ({ from: addresses(from), to: addresses(to) }))
    : [{ from: members, to: there }];
  const write = forwardRulesOf(link);
  return [
    ...(maps.length > 0 ? [write.mapInward(maps)] : []),
    write.clampMss('out'),
    write.clampMss('in'),
    ...deadlines,
    ...(relays ? [write.refuseDetour({ from: addresses(connectors), to: addresses(relayedPeers) })] : []),
    ...closings(ingress),
    ...(near.length > 0 ? write.refuseStale(masquerade, { from: range, to: near }, { to: nested }) : []),
    ...(exits.length > 0 ? write.refuseStale(masquerade, { from: range, to: exits }, { to: known }) : []),
    ...(plain
      ? [
          ...write.refuseStale(hidesLan, { from: unmapped, to: there }, { from: nested }),
          ...write.refuseUnmapped(plain, maps),
        ]
      : []),
    ...maps.flatMap((each) => [
      ...write.refuseRemapped(members, each),
      ...write.refuseResourced(each.local, there, hidesLan ? hostPrefix(self.address) : each.route),
    ]),
    // Packets from the tunnel.
    write.acceptPublished(self.address),
    write.acceptAnswers('across', { from: members, to: there }),
    ...(outward ? [write.acceptAnswers('in', outward)] : []),
    write.acceptLocalAnswers(outside),
    write.refuseAnswers('in'),
    ...relayed.map((ends) => write.acceptRelayed(ends)),
    ...(plain ? [write.acceptInward(plain)] : []),
    ...(maps.length > 0 ? [write.acceptMapped(members, maps)] : []),
    ...(maps.length > 0 && !masquerade ? mapInvalid(link, maps, { members, there }) : []),
    ...(exit ? [write.acceptExit(exit)] : []),
    write.refuseRest(),
    // Packets into the tunnel.
    ...(inward ? [write.acceptAnswers('out', inward)] : []),
    ...(exit ? [write.acceptExitAnswers(exit)] : []),
    write.acceptPublishedAnswers(self.address),
    write.refuseAnswers('out'),
    ...(onStandby.length > 0 ? write.refuseStandby({ from: onStandby, to: there }, notRefused) : []),
    ...findEntrances(locals, linksToward).map(({ by, from }) => write.acceptOutward(by, { from, to: there })),
    write.refuseSpoofed(widest([...known, ...locals])),
    ...(outside.length > 0 ? [write.refuseOutside(outside)] : []),
    write.refuseKnown(),
    ...kept.map(({ from, to, always }) => write.keepRelayed({ from: addresses(from), to: addresses(to) }, always)),
    ...(maps.length > 0 && !hidesLan ? [write.mapOutward(maps, there)] : []),
    ...(isClosed ? [] : [write.masqueradeRelayed(members, self.address)]),
    ...(plainLan.length > 0 && masquerade ? [write.masquerade({ from: range, to: plainLan })] : []),
    ...(maps.length > 0 && masquerade ? [write.masqueradeMapped(range, maps)] : []),
    ...(outward && hidesLan ? [write.masqueradeOutward(outward)] : []),
    write.refuseRedirects(familyOf(map.cidr)),
    write.acceptLeavingAnswers(),
    write.refuseForeign(known),
  ];
}

/**
 * For a host that is no connector but has containers: they answer on published ports and open
 * connections. Nothing else comes out of the tunnel.
 */
export function localRules(link: string, self: Peer, deadlines: readonly PacketRule[] = []): readonly PacketRule[] {
  const write = forwardRulesOf(link);
  return [...deadlines, write.acceptPublished(self.address), write.acceptLocalAnswers([]), write.refuseRest()];
}

/** Packets by an interface whose forwarding is on only for this connector enter only the tunnel. */
function closings(ingress: readonly Ingress[]): PacketRule[] {
  const own = ingress.filter((each) => each.closed !== null && each.closed.length > 0);
  const groups = Map.groupBy(own, ({ closed }) => closed?.join() ?? '');
  return [...groups.values()].flatMap((group) =>
    refusePassing(
      group.map(({ link }) => link),
      group[0]?.closed ?? [],
    ),
  );
}

/** Ranges outside a served default route: gateways (cloud credentials) or the host answer there. */
function specialOf(cidr: Prefix): Prefix[] {
  return specialRanges.map(([range]) => range).filter((range) => familyOf(range) === familyOf(cidr));
}

function addresses(peers: readonly Peer[]): Prefix[] {
  return peers.map(({ address }) => hostPrefix(address));
}
