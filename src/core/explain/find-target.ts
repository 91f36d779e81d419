import { isIpv6Excepted } from '../forward/ipv6-outside.ts';
import type { Peer } from '../map/model.ts';
import { translate } from '../map/prefix-maps.ts';
import { type Address, covers, familyOf, hostPrefix, isDefaultRoute, lengthOf, type Prefix } from '../net/cidr.ts';
import { staysLocal } from '../routing/kept-outside.ts';
import { findOutsideRoute, nameOutside, remedyOf } from '../routing/outside-report.ts';
import type { RouteReport } from '../routing/route-report.ts';
import { areStrict, isKeptOut } from '../routing/strict-rules.ts';
import { findWantedOwner, type NetworkOnHost } from './view.ts';

/** What an address is in a network. */
export type PacketTarget =
  | { readonly is: 'self' }
  | { readonly is: 'peer'; readonly peer: Peer }
  | { readonly is: 'route'; readonly report: RouteReport }
  /** In the network's range, and assigned to no peer. */
  | { readonly is: 'unassigned' };

export interface FoundTarget<V extends NetworkOnHost = NetworkOnHost> {
  readonly view: V;
  readonly target: PacketTarget;
}

/**
 * Returns the network that carries an address, by the narrowest prefix as in the kernel, or else
 * the network that should. Null outside all networks. `views` are in order of precedence.
 */
export function findNetwork<V extends NetworkOnHost>(address: Address, views: readonly V[]): FoundTarget<V> | null {
  const found = views.flatMap((view) => {
    const target = findTarget(address, view);
    return target === null ? [] : [{ view, target, rank: rank(address, target, view) }];
  });
  const [best] = found.toSorted((a, b) => b.rank - a.rank);
  return best ? { view: best.view, target: best.target } : null;
}

/** Returns what an address is in this network; null if it is not in the network. */
function findTarget(address: Address, view: NetworkOnHost): PacketTarget | null {
  const { map } = view;
  if (address === view.address) return { is: 'self' };
  const peer = map.peers.find((each) => each.address === address);
  if (peer) return { is: 'peer', peer };
  const reports = findReports(address, view);
  const [narrow] = reports.filter(({ prefix }) => !isDefaultRoute(prefix));
  if (narrow && (explainException(address, narrow, view) !== null || isBehind(address, narrow, view))) return null;
  if (narrow) return { is: 'route', report: narrow };
  if (covers(map.cidr, address)) return { is: 'unassigned' };
  const [tunnel] = reports.filter(({ state }) => state === 'taken');
  return tunnel && !staysOutside(address, view) ? { is: 'route', report: tunnel } : null;
}

/** Explains why an address is not in a full tunnel or is excepted from a route; else null. */
export function explainOutside(address: Address, view: NetworkOnHost): string | null {
  const mapped = explainMapped(address, view);
  if (mapped !== null) return mapped;
  const [narrow] = findReports(address, view).filter(({ prefix }) => !isDefaultRoute(prefix));
  const exception = narrow === undefined ? null : explainException(address, narrow, view);
  if (exception !== null) return exception;
  if (familyOf(address) === 6) return explainIpv6(address, view);
  const [tunnel] = findReports(address, view).filter(({ prefix }) => isDefaultRoute(prefix));
  if (tunnel === undefined) return null;
  const { prefix, state } = tunnel;
  const reason = tunnel.reason ?? view.actual.underlay.forwarded?.[prefix]?.why ?? null;
  if (state === 'taken') {
    const route = findOutsideRoute(address, view.desired.rules, view.actual.underlay);
    const by = route === null ? '' : `, because of the route ${nameOutside(route)}`;
    return `it stays outside the full tunnel of network ${view.map.name}${by}`;
  }
  return `${prefix} of network ${view.map.name} is ${state} on this host${reason === null ? '' : `: ${reason}`}`;
}

/** True if a mapped LAN of this host has the address, and is narrower than the route. */
function isBehind(address: Address, { prefix }: RouteReport, { desired }: NetworkOnHost): boolean {
  return desired.report.some(
    ({ local }) => local !== undefined && covers(local, address) && lengthOf(local) > lengthOf(prefix),
  );
}

/** Gives the address by which peers reach a mapped LAN; null for an address in none. */
function explainMapped(address: Address, { map, desired }: NetworkOnHost): string | null {
  for (const { prefix, local } of desired.report) {
    if (local === undefined || !covers(local, address)) continue;
    return `peers of network ${map.name} reach it only as ${translate(address, local, prefix)}, through this host`;
  }
  return null;
}

/** A full tunnel carries only IPv4. */
function explainIpv6(address: Address, { map, enabled, desired: { ipv6 } }: NetworkOnHost): string | null {
  if (ipv6 === null || !enabled) return null;
  const isRejected = ipv6.exceptions !== null && !isIpv6Excepted(address, ipv6.exceptions);
  return isRejected
    ? `the full tunnel of network ${map.name} carries only IPv4`
    : `it stays outside the full tunnel of network ${map.name}`;
}

/** The command for an address that an unexpected route leads past the full tunnel, or null. */
export function remedyOutside(address: Address, views: readonly NetworkOnHost[]): string | null {
  for (const { desired, actual } of views) {
    if (desired.rules.length === 0) continue;
    const route = findOutsideRoute(address, desired.rules, actual.underlay);
    if (route !== null && !route.isExpected) return remedyOf(desired.link);
  }
  return null;
}

/** Explains why an address in an accepted route stays outside the tunnel; null if it does not. */
function explainException(address: Address, { prefix, state }: RouteReport, view: NetworkOnHost): string | null {
  if (state !== 'taken') return null;
  const { map, desired, actual } = view;
  const within = `the route ${prefix} of network ${map.name}`;
  const kept = desired.keptOutside.find((each) => each.address === address);
  if (kept) return `it is in ${within}, and stays outside: ${kept.what}`;
  const { connected } = actual.underlay;
  const subnet = connected.find((each) => staysLocal(prefix, address, [each]));
  return subnet ? `it is in ${within}, and stays local: this host is in ${subnet.prefix} (${subnet.link})` : null;
}

/** Returns the routes that contain the address. Routes in use come first, then the narrowest. */
function findReports(address: Address, { map, listed, desired }: NetworkOnHost): RouteReport[] {
  const unlisted = (prefix: Prefix): RouteReport => ({ prefix, via: null, state: 'missing', reason: null });
  const reports = listed ? desired.report : map.routes.map(unlisted);
  return reports
    .filter(({ prefix, state }) => state !== 'standby' && prefix !== map.cidr && covers(prefix, address))
    .toSorted((a, b) => weigh(carries(b), b.prefix) - weigh(carries(a), a.prefix));
}

function rank(address: Address, target: PacketTarget, view: NetworkOnHost): number {
  const serves = view.enabled && view.listed;
  if (target.is === 'unassigned') return weigh(false, view.map.cidr);
  if (target.is === 'route') return weigh(serves && carries(target.report), target.report.prefix);
  const reached = target.is === 'self' || findWantedOwner(address, view) !== null;
  return weigh(serves && reached, hostPrefix(address));
}

function weigh(carried: boolean, prefix: Prefix): number {
  return (carried ? 1000 : 0) + lengthOf(prefix);
}

function carries({ state }: RouteReport): boolean {
  return state === 'taken' || state === 'served' || state === 'withdrawn';
}

/** A full tunnel takes packets that no other route or exception matches: {@link tunnelRules}. */
function staysOutside(address: Address, { desired, actual: { underlay } }: NetworkOnHost): boolean {
  const { addresses, connected, routed } = underlay;
  const elsewhere = areStrict(desired.rules) ? [] : [...connected, ...routed];
  return (
    familyOf(address) === 6 ||
    addresses.includes(address) ||
    elsewhere.some(({ prefix }) => covers(prefix, address)) ||
    isKeptOut(address, desired.rules)
  );
}
