import type { Underlay } from '../host-state/actual.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import type { Options } from '../map/options.ts';
import { familyOf, hostPrefix, isDefaultRoute, lengthOf, type Prefix } from '../net/cidr.ts';
import { isPlainLinkName } from '../net/link-name.ts';
import { specialRanges } from '../routing/guard.ts';
import { assignedRoutes } from '../routing/route-owner.ts';
import type { DeadlineRule } from './deadline-rules.ts';
import { findEntrances } from './entrances.ts';
import type { FirewallRule } from './firewall-rule.ts';
import type { Ingress } from './ingress.ts';
import { linkFinder } from './links-toward.ts';
import { widest } from './nft-words.ts';

/** What the packet rules of a connector follow from. */
export interface Forwarding {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly options: Pick<Options, 'masquerade' | 'acceptRoutes'>;
  /** Peers that do not answer here, and are reached through another connector. */
  readonly relayedPeers: readonly Peer[];
  readonly underlay: Underlay;
  /** The interfaces that its routes use. */
  readonly ingress: readonly Ingress[];
  /** Rules that come before all that let packets through. */
  readonly deadlines?: readonly DeadlineRule[];
}

/**
 * The packet rules of a connector, in their order: what is advertised is forwarded, and nothing else that comes from the tunnel or
 * goes into it. A packet of a connection that is known passes by the same prefixes as the first one did, so that the
 * connection ends with its route. What is relayed gets this connector's own address in any case, and what its LAN begins
 * unless options say no: a host takes from a connector only what bears that connector's address, or an address of the routes
 * that it holds this very connector for, and hosts may differ in that for a while.
 */
export function forwardingRules({
  map,
  self,
  options: { masquerade, acceptRoutes },
  relayedPeers,
  underlay,
  ingress,
  deadlines = [],
}: Forwarding): readonly FirewallRule[] {
  const linksToward = linkFinder(underlay);
  const linksOf = (routes: readonly Prefix[], more: readonly string[]) =>
    [...new Set([...more, ...routes.flatMap(linksToward)])].filter(isPlainLinkName).toSorted();
  const ofFamily = (route: Prefix) => familyOf(route) === familyOf(map.cidr);
  const assigned = assignedRoutes(map, self);
  const served = assigned.filter(ofFamily);
  const elsewhere = acceptRoutes ? map.routes.filter((route) => ofFamily(route) && !assigned.includes(route)) : [];
  // Where the range is not known: the network's addresses one by one.
  const range = lengthOf(map.cidr) < 32 ? [map.cidr] : widest([map.cidr, ...addresses(map.peers)]);
  const there = widest([...range, ...elsewhere]);
  // A default route is for connections that begin within the network.
  const members = widest([...range, ...elsewhere.filter((route) => !isDefaultRoute(route))]);
  const lan = widest(served);
  const begins = widest(served.filter((route) => !isDefaultRoute(route)));
  const exits = widest(served.filter(isDefaultRoute));
  // A VPN may have put its own two halves before the default route of the host.
  const halves = underlay.routed.filter(({ prefix }) => isDefaultRoute(prefix)).map(({ link }) => link);
  const doors = exits.length === 0 ? [] : linksOf(exits, halves);
  const connectors = map.peers.filter(({ id, type }) => type === 'connector' && id !== self.id);
  const relays = relayedPeers.length > 0 && connectors.length > 0;
  const outside = linksOf(served, underlay.uplinks);
  const inward = begins.length === 0 ? null : { from: members, to: begins };
  const exit = doors.length === 0 ? null : { by: doors, from: members, to: exits, except: specialOf(map.cidr) };
  const outward = begins.length === 0 ? null : { from: begins, to: there };
  const known = widest([...members, ...begins]);
  return [
    { rule: 'clamp-mss', direction: 'out' },
    { rule: 'clamp-mss', direction: 'in' },
    ...deadlines,
    ...(relays ? [{ rule: 'refuse-detour', from: addresses(connectors), to: addresses(relayedPeers) } as const] : []),
    ...closings(ingress),
    ...(lan.length > 0 ? [{ rule: 'refuse-stale', masquerade, from: range, to: lan } as const] : []),
    ...(outward ? [{ rule: 'refuse-stale', masquerade, ...outward } as const] : []),
    // What comes from the tunnel.
    { rule: 'accept-published', at: self.address },
    { rule: 'accept-answers', direction: 'across', from: members, to: there },
    ...(outward ? [{ rule: 'accept-answers', direction: 'in', ...outward } as const] : []),
    { rule: 'accept-local-answers', outside },
    { rule: 'refuse-answers', direction: 'in' },
    { rule: 'accept-relayed', from: members, to: there },
    ...(inward ? [{ rule: 'accept-inward', ...inward } as const] : []),
    ...(exit ? [{ rule: 'accept-exit', ...exit } as const] : []),
    { rule: 'refuse-rest' },
    // What goes into it.
    ...(inward ? [{ rule: 'accept-answers', direction: 'out', ...inward } as const] : []),
    ...(exit ? [{ rule: 'accept-exit-answers', ...exit } as const] : []),
    { rule: 'accept-published-answers', at: self.address },
    { rule: 'refuse-answers', direction: 'out' },
    ...findEntrances(begins, linksToward).map(
      ({ by, from }) => ({ rule: 'accept-outward', by, from, to: there }) as const,
    ),
    { rule: 'refuse-spoofed', from: known },
    ...(outside.length > 0 ? [{ rule: 'refuse-outside', by: outside } as const] : []),
    { rule: 'refuse-known' },
    { rule: 'masquerade-relayed', from: members, except: self.address },
    ...(lan.length > 0 && masquerade ? [{ rule: 'masquerade', from: range, to: lan } as const] : []),
    ...(outward && masquerade ? [{ rule: 'masquerade-outward', ...outward } as const] : []),
    { rule: 'accept-leaving-answers' },
    { rule: 'refuse-foreign', from: known },
  ];
}

/**
 * The packet rules of a host that is no connector, but forwards on its own account: containers there answer on ports of its
 * own, and call out. Nothing else comes out of the tunnel.
 */
export function localRules(self: Peer, deadlines: readonly DeadlineRule[] = []): readonly FirewallRule[] {
  return [
    ...deadlines,
    { rule: 'accept-published', at: self.address },
    { rule: 'accept-local-answers', outside: [] },
    { rule: 'refuse-rest' },
  ];
}

/** Keeps what comes in by an interface that forwards for this connector alone from going anywhere but into the tunnel. */
function closings(ingress: readonly Ingress[]): FirewallRule[] {
  const own = ingress.filter((each) => each.closed !== null && each.closed.length > 0);
  const groups = Map.groupBy(own, ({ closed }) => closed?.join() ?? '');
  return [...groups.values()].flatMap((group): FirewallRule[] => {
    const by = group.map(({ link }) => link);
    const toward = group[0]?.closed ?? [];
    return [
      { rule: 'accept-passing-answers', by, toward },
      { rule: 'refuse-passing', by, toward },
    ];
  });
}

/** What a default route leads nowhere for: a gateway answers there, as with the credentials of a cloud, and the host itself. */
function specialOf(cidr: Prefix): Prefix[] {
  return specialRanges.map(([range]) => range).filter((range) => familyOf(range) === familyOf(cidr));
}

function addresses(peers: readonly Peer[]): Prefix[] {
  return peers.map(({ address }) => hostPrefix(address));
}
