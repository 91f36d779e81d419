import type { Actual, Link, Route, Underlay } from '../host-state/actual.ts';
import { acceptedMetric } from '../host-state/marks.ts';
import {
  familyOf,
  formatInterfaceAddress,
  type InterfaceAddress,
  isDefaultRoute,
  onLinkRange,
  type Prefix,
} from '../net/cidr.ts';
import { type RouteStanding, routeClassifier } from '../routing/own-routes.ts';
import { placeRoutes, type RoutePlacement, type TableAndMetric, usualMetric } from '../routing/place-route.ts';
import { added, type Change, removed, updated } from './change.ts';
import type { Desired } from './desired.ts';
import { planOutside } from './plan-outside.ts';
import { planPair, planRules } from './plan-rules.ts';
import type { LinkCommand, Step } from './step.ts';

/** Creates the interface if it does not exist. */
export function planCreation({ link }: Desired, actual: Actual): Step[] {
  if (actual.link !== null) return [];
  return [
    { do: 'create-link', link, changes: [added('interface', link, 'wireguard', 'the interface does not exist')] },
  ];
}

/**
 * Plans the interface's firewall mark, MTU, addresses, state, routes and policy rules as one batch.
 */
export function planSettings(desired: Desired, actual: Actual): Step[] {
  // A rule needs its route: it is added after the routes and removed before them.
  const place = placeRoutes(desired, actual);
  const classify = routeClassifier(desired, place);
  const routes = planRoutes(desired, actual, place, classify);
  const isUsed = desired.routes.some((prefix) => place(prefix).table === desired.routeTable);
  const rules = [...planPair(desired.routeTable, isUsed, actual), ...planRules(desired, actual)];
  // An address is kept outside before the route to it is added, and until that route is removed.
  const outside: PlannedCommand[] = planOutside(desired, actual, place);
  const commands: PlannedCommand[] = [
    ...(actual.link === null ? [[{ set: 'alias', value: desired.alias }, null] as const] : []),
    ...planMtu(desired, actual),
    ...planAddresses(desired, actual.link),
    ...planUp(desired, actual),
    ...planProbeAddress(desired, actual.link),
    ...planRange(desired, actual, classify),
    ...outside.filter(adds),
    ...routes.filter(adds),
    ...rules,
    ...routes.filter((each) => !adds(each)),
    ...outside.filter((each) => !adds(each)),
  ];
  if (commands.length === 0) return [];
  return [
    {
      do: 'configure-link',
      link: desired.link,
      commands: commands.map(([command]) => command),
      changes: commands.flatMap(([, change]) => change ?? []),
    },
  ];
}

/** A command and its change; null if it only completes the creation of the interface. */
type PlannedCommand = readonly [LinkCommand, Change | null];
type Classify = (route: Route) => RouteStanding;

function adds([command]: PlannedCommand): boolean {
  return 'add' in command;
}

function planMtu({ link, config: { mtu } }: Desired, actual: Actual): PlannedCommand[] {
  if (actual.link?.mtu === mtu) return [];
  const before = actual.link?.mtu;
  const change = before === undefined ? null : updated('interface', link, { mtu: before }, { mtu }, 'the MTU differs');
  return [[{ set: 'mtu', value: mtu }, change]];
}

function planUp({ link }: Desired, actual: Actual): PlannedCommand[] {
  if (actual.link?.up) return [];
  const change = actual.link && updated('interface', link, { state: 'down' }, { state: 'up' }, 'the interface is down');
  return [[{ set: 'up' }, change]];
}

/** The address goes with the interface. Other link-local addresses are the kernel's. */
function planProbeAddress({ link, probeAddress }: Desired, actual: Link | null): PlannedCommand[] {
  if (probeAddress === null || actual?.addresses.some((each) => each.address === probeAddress.address)) return [];
  const reason = 'the probe address is not on the interface';
  return [
    [{ add: 'address', address: probeAddress }, added('address', formatInterfaceAddress(probeAddress), link, reason)],
  ];
}

/** Removals come first: in one subnet, the kernel drops later addresses with the first one. */
function planAddresses({ link, config }: Desired, actual: Link | null): PlannedCommand[] {
  const present = actual?.addresses.filter(({ address }) => !address.startsWith('fe80:')) ?? [];
  const surplus = present.filter((address) => !isSameAddress(address, config.address));
  const removals = surplus.map((address): PlannedCommand => {
    const target = formatInterfaceAddress(address);
    return [{ remove: 'address', address }, removed('address', target, link, 'not the address of this peer')];
  });
  if (surplus.length < present.length) return removals;
  const target = formatInterfaceAddress(config.address);
  const reason = "the peer's address is not on the interface";
  return [...removals, [{ add: 'address', address: config.address }, added('address', target, link, reason)]];
}

/**
 * Adds the route to the range of an address. The kernel adds it only with the address or at link up
 * (fib_add_ifaddr in net/ipv4/fib_frontend.c).
 */
function planRange(desired: Desired, actual: Actual, classify: Classify): PlannedCommand[] {
  const { address } = desired.config;
  const range = onLinkRange(address);
  const isMade = actual.link?.up && actual.link.addresses.some((each) => isSameAddress(each, address));
  if (range === null || !isMade || actual.onLink.includes(range)) return [];
  const reason = 'the route to the range of the address is gone';
  return [planRoute(desired, actual, classify, { add: 'route', prefix: range, source: address.address }, reason)];
}

function planRoutes(desired: Desired, actual: Actual, place: RoutePlacement, classify: Classify): PlannedCommand[] {
  const { link, routes, config } = desired;
  // With its last IPv4 address, an interface loses all its IPv4 routes (fib_disable_ip in
  // net/ipv4/fib_frontend.c).
  const keepsAddress = actual.link?.addresses.some((each) => isSameAddress(each, config.address)) ?? false;
  const present = Map.groupBy(
    actual.routes.filter(({ prefix }) => keepsAddress || familyOf(prefix) === 6),
    classify,
  );
  const wanted = new Set(routes);
  const isInTable = ({ prefix, table }: Route) => wanted.has(prefix) && table === place(prefix).table;
  const kept = new Set<Prefix>(present.get('kept')?.map((route) => route.prefix));
  const surplus = present.get('surplus') ?? [];
  const isMoved = (route: Route) =>
    wanted.has(route.prefix) &&
    !kept.has(route.prefix) &&
    isPlain(route) &&
    (isInTable(route) || !isDefaultRoute(route.prefix));
  const moved = new Map(surplus.filter(isMoved).map((route) => [route.prefix, route]));
  const additions = [...wanted]
    .filter((prefix) => !kept.has(prefix))
    .map((prefix): PlannedCommand => {
      const { table, metric } = place(prefix);
      const command: AddRoute = { add: 'route', prefix, table, metric };
      const before = moved.get(prefix);
      const addition = planRoute(desired, actual, classify, command, 'a peer serves it');
      return before === undefined || 'replaces' in addition[0]
        ? addition
        : [command, describeMove(before, { table, metric }, desired)];
    });
  const removals = surplus.map((route): PlannedCommand => {
    const { prefix, protocol, table, metric, tos } = route;
    const key = { ...(metric !== null && { metric }), ...(tos !== undefined && { tos }) };
    const command: LinkCommand = { remove: 'route', prefix, protocol, table, ...key };
    if (isMoved(route)) return [command, null];
    const isExplained = isInTable(route) || !isPlain(route);
    const other =
      route.deviation === undefined ? 'another metric' : `it routes packets differently: ${route.deviation}`;
    const why = !wanted.has(prefix) ? explainSurplus(prefix, desired) : isExplained ? other : 'it is in another table';
    return [command, removed('route', prefix, nameTarget(link, table), why)];
  });
  return [...additions, ...removals];
}

function explainSurplus(prefix: Prefix, { report }: Desired): string {
  const refused = report.find((route) => route.prefix === prefix && route.state === 'refused');
  return refused?.reason ?? 'no peer serves it';
}

function isPlain({ tos, deviation }: Route): boolean {
  return tos === undefined && deviation === undefined;
}

/** For a route that moves to another table, the metric is omitted. */
function describeMove(before: Route, { table, metric }: TableAndMetric, { allowed }: Desired): Change {
  const { prefix } = before;
  if (before.table !== table) {
    const other =
      table === 'main' ? 'another rule or route would come before its table' : 'a local network comes first';
    const why = allowed.includes(prefix) ? 'it is let through' : other;
    return updated('route', prefix, { table: before.table }, { table }, why);
  }
  const why = metric === acceptedMetric ? 'a local network with this prefix comes first' : 'it is let through';
  return updated('route', prefix, { metric: before.metric }, { metric }, why);
}

function planRoute(
  desired: Desired,
  actual: Actual,
  classify: Classify,
  command: AddRoute,
  reason: string,
): PlannedCommand {
  const { link, newerLinks } = desired;
  const { prefix, table = 'main' } = command;
  const inPlace = actual.routes.filter((route) => route.prefix === prefix && route.table === table);
  const altered = inPlace.find((route) => classify(route) === 'altered');
  if (altered?.deviation !== undefined) {
    const why = 'another route in its place routes packets differently';
    const replaces = altered.metric ?? usualMetric(prefix);
    return [{ ...command, replaces }, updated('route', prefix, altered.deviation, nameTarget(link, table), why)];
  }
  const holder = table === 'main' ? findHolder(prefix, newerLinks, actual) : null;
  if (holder === null) return [command, added('route', prefix, nameTarget(link, table), reason)];
  const right = 'the network that was joined earlier takes precedence';
  return [{ ...command, replaces: holder.metric }, updated('route', prefix, holder.link, link, right)];
}

type AddRoute = Extract<LinkCommand, { add: 'route' }>;

/**
 * Finds the interface of a network that was joined after this one and has a route to exactly this
 * prefix. The new route replaces that one: the kernel accepts no second route with the same metric.
 */
function findHolder(prefix: Prefix, newerLinks: readonly string[], { underlay }: Actual) {
  const candidates: Underlay['routed'] = [...underlay.routed, ...underlay.connected];
  const routed = candidates.find((each) => each.prefix === prefix && newerLinks.includes(each.link));
  return routed ? { link: routed.link, metric: routed.metric ?? usualMetric(prefix) } : null;
}

function nameTarget(link: string, table: string): string {
  return table === 'main' ? link : `${link} table ${table}`;
}

function isSameAddress(one: InterfaceAddress, other: InterfaceAddress): boolean {
  return one.address === other.address && one.length === other.length;
}
