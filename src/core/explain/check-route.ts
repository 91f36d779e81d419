import type { KernelRoute, RefusedRoute, TakenRoute } from '../host-state/kernel-route.ts';
import { routeProtocol } from '../host-state/marks.ts';
import { formatRule, type Rule, sameRule } from '../host-state/policy-rule.ts';
import {
  type Address,
  covers,
  formatInterfaceAddress,
  isDefaultRoute,
  lengthOf,
  maskPrefix,
  type Prefix,
} from '../net/cidr.ts';
import { findForeignRoutes } from '../routing/own-routes.ts';
import { placeRoutes } from '../routing/place-route.ts';
import { isRouteTable } from '../routing/route-table.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import type { FoundTarget, PacketTarget } from './find-target.ts';
import type { NetworkOnHost } from './view.ts';

/** True for a target to which this host normally sends through the tunnel. */
export function usesTunnel(target: PacketTarget): boolean {
  if (target.is === 'self') return false;
  return target.is !== 'route' || (target.report.state !== 'served' && target.report.state !== 'withdrawn');
}

/** Checks whether the kernel sends packets to an address of a network as desired. */
export function checkRoute(address: Address, { view, target }: FoundTarget, kernelRoute: KernelRoute): Check {
  const { link } = view.desired;
  const lack = describeLack(view);
  if (lack !== null && (usesTunnel(target) || target.is === 'self')) {
    const instead = kernelRoute.link === null || kernelRoute.local ? '' : `: the packet ${describeRoute(kernelRoute)}`;
    return stops('route', `${lack}${instead}`, '"cpn reconcile" repairs the interface');
  }
  const behind = target.is === 'route' ? (target.report.local ?? target.report.prefix) : null;
  const unserved = behind && view.actual.underlay.forwarded?.[behind]?.why;
  if (unserved) return stops('route', `packets from ${link} are not forwarded: ${unserved}`, routeToLan);
  if (kernelRoute.link === null) return refused(kernelRoute, target, link);
  if (target.is === 'self') {
    if (kernelRoute.local) return passes('route', 'stays on this host');
    return stops('route', `${link} does not have the address: the packet ${describeRoute(kernelRoute)}`, reconcile);
  }
  if (!usesTunnel(target)) {
    // A route that this host serves leads to its LAN, and never back into the tunnel.
    if (kernelRoute.link !== link) return passes('route', describeRoute(kernelRoute));
    return stops('route', `${describeRoute(kernelRoute)}, back into the tunnel`, routeToLan);
  }
  if (kernelRoute.link !== link) return checkDiversion(address, view, kernelRoute);
  if (kernelRoute.source === null || kernelRoute.source === view.address)
    return passes('route', describeRoute(kernelRoute));
  const problem = `${describeRoute(kernelRoute)}; from ${kernelRoute.source} instead of ${view.address}, and peers drop it`;
  return stops('route', problem, reconcile);
}

/** Reports the kernel's route of a packet outside every network of cpn. */
export function describeElsewhere(kernelRoute: KernelRoute): Check {
  return kernelRoute.link === null
    ? stops('route', describeRefusal(kernelRoute), 'give this host a route there')
    : passes('route', kernelRoute.local ? 'stays on this host' : describeRoute(kernelRoute));
}

/** Reports a foreign route into a tunnel in which no peer accepts the packets; null without one. */
export function checkForeign(views: readonly NetworkOnHost[], kernelRoute: KernelRoute): Check | null {
  if (kernelRoute.link === null || kernelRoute.local) return null;
  const view = views.find(({ desired }) => desired.link === kernelRoute.link);
  const foreign = view && findForeignRoutes(view.desired, view.actual);
  const route = foreign?.find(({ prefix, table }) => prefix === kernelRoute.prefix && table === kernelRoute.table);
  if (route === undefined) return null;
  return stops(
    'route',
    `${describeRoute(kernelRoute)}; no peer accepts it there`,
    `"${route.remedy}" removes that route`,
  );
}

/** Reports the kernel's route of a packet that this network does not carry. */
export function describeInstead(kernelRoute: KernelRoute): Check {
  return inconclusive('route', kernelRoute.link === null ? describeRefusal(kernelRoute) : describeRoute(kernelRoute));
}

/** Example: `leaves by eth0 via 203.0.113.1 from 203.0.113.22, by the route to 192.168.50.0/24`. */
export function describeRoute({ link, local, source, gateway, table, prefix, protocol }: TakenRoute): string {
  if (local) return 'stays on this host';
  const where = gateway === null ? link : `${link} via ${gateway}`;
  const leaves = `leaves by ${where}${source === null ? '' : ` from ${source}`}`;
  if (prefix === null) return leaves;
  const route = isDefaultRoute(prefix) ? 'the default route' : `the route to ${prefix}`;
  const of = table === 'main' ? '' : ` of table ${table}`;
  return `${leaves}, by ${route}${of} (${protocol === routeProtocol ? 'made by cpn' : protocol})`;
}

export function describeRefusal({ why }: RefusedRoute): string {
  if (why === 'none') return 'this host has no route there';
  const kinds = { unreachable: 'an unreachable', prohibit: 'a prohibit', blackhole: 'a blackhole' };
  return `${kinds[why]} route or rule of this host refuses it`;
}

/** Returns why no packet can enter the interface or leave from its address, or null. */
function describeLack({ desired, actual, address: own }: NetworkOnHost): string | null {
  const { link } = desired;
  if (actual.link === null) return `the interface ${link} is missing`;
  if (!actual.link.up) return `${link} is down`;
  const present = actual.link.addresses.some(({ address }) => address === own);
  return present ? null : `${link} does not have the address ${own}`;
}

const reconcile = '"cpn reconcile" repairs it';
const routeToLan = 'give this connector a route to its LAN';

function refused(route: RefusedRoute, target: PacketTarget, link: string): Check {
  const problem = describeRefusal(route);
  if (route.why !== 'none') {
    const place = usesTunnel(target) ? `the one into ${link}` : 'the one to the LAN';
    return stops('route', problem, `remove that route or rule, which takes precedence over ${place}`);
  }
  return stops('route', problem, usesTunnel(target) ? reconcile : routeToLan);
}

/** Reports what diverts a packet from the tunnel: a local address, a rule, or a route. */
function checkDiversion(address: Address, view: NetworkOnHost, route: TakenRoute): Check {
  const { link } = view.desired;
  if (route.local) return stops('route', 'this host has that address', 'remove the address from this host');
  const instead = `${describeRoute(route)}, not into ${link}`;
  if (route.prefix === null)
    return stops('route', instead, `find that route; "cpn down ${link}" and "cpn up ${link}" restore the route of cpn`);
  const wanted = findWantedRoute(address, view);
  // Another route of the same prefix wins by its metric, and a narrower one always.
  if (wanted !== null && comesFirst(route.table, route.prefix, wanted, view))
    return stops('route', instead, `remove the route to ${route.prefix} by ${route.link}, or narrow it`);
  const rule = findForeignRule(address, route.table, view);
  if (rule) {
    const because = `${instead}; the policy rule "${rule.priority}: ${formatRule(rule)}" leads there`;
    return stops('route', because, 'remove that rule, or narrow it');
  }
  return stops('route', wanted === null ? instead : `${instead}: the route to ${wanted} is gone`, reconcile);
}

/** True if that route wins by length or metric, or its table precedes that of accepted routes. */
function comesFirst(table: string, prefix: Prefix, wanted: Prefix, { desired, actual }: NetworkOnHost): boolean {
  const place = placeRoutes(desired, actual)(wanted);
  if (isRouteTable(place.table) && table === 'main') return lengthOf(prefix) > 0;
  return table === place.table && lengthOf(prefix) >= lengthOf(wanted);
}

/** Finds a rule of another program that leads packets without a chosen source to a table. */
function findForeignRule(address: Address, table: string, { desired, actual }: NetworkOnHost): Rule | undefined {
  return actual.rules.find(
    (rule) =>
      rule.table === table &&
      rule.suppress === null &&
      rule.from === null &&
      (rule.to === null || covers(rule.to, address)) &&
      !desired.rules.some((own) => sameRule(own, rule)),
  );
}

/** The prefix by which packets to the address should enter the tunnel. */
function findWantedRoute(address: Address, { desired, actual }: NetworkOnHost): Prefix | null {
  const subnets = (actual.link?.addresses ?? []).map((each) => maskPrefix(formatInterfaceAddress(each)));
  const covering = [...desired.routes, ...subnets].filter((prefix) => covers(prefix, address));
  return covering.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0] ?? null;
}
