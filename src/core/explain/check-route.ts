import { type Address, covers, lengthOf, maskPrefix, type Prefix } from '../cidr.ts';
import { isDefaultRoute, routingTableOf } from '../full-tunnel.ts';
import type { KernelRoute, RefusedRoute, TakenRoute } from '../kernel-route.ts';
import { routeProtocol } from '../marks.ts';
import { formatInterfaceAddress } from '../model.ts';
import { formatRule, type Rule, sameRule } from '../rule.ts';
import { type Check, leavesOpen, passes, stops } from './check.ts';
import type { Found, Target } from './find-target.ts';
import type { View } from './view.ts';

/** True for what this host sends through the tunnel, when all is well. */
export function goesThrough(target: Target): boolean {
  if (target.is === 'self') return false;
  return target.is !== 'route' || (target.report.state !== 'served' && target.report.state !== 'withdrawn');
}

/** Tells where the kernel sends a packet to an address of a network, and whether that is where it should. */
export function checkRoute(address: Address, { view, target }: Found, way: KernelRoute): Check {
  const { link } = view.desired;
  const lack = describeLack(view);
  if (lack !== null && (goesThrough(target) || target.is === 'self')) {
    const beside = way.link === null || way.local ? '' : `: the packet ${describeWay(way)}`;
    return stops('route', `${lack}${beside}`, '"cpn reconcile" makes the interface what it should be');
  }
  if (way.link === null) return refused(way, target, link);
  if (target.is === 'self') {
    if (way.local) return passes('route', 'stays on this host');
    return stops('route', `${link} does not have the address: the packet ${describeWay(way)}`, reconcile);
  }
  if (!goesThrough(target)) return checkOwnLan(way, link);
  if (way.link !== link) return drawnAway(address, view, way);
  if (way.source === null || way.source === view.address) return passes('route', describeWay(way));
  const problem = `${describeWay(way)}; from ${way.source} instead of ${view.address}, which peers do not take`;
  return stops('route', problem, reconcile);
}

/** Tells where the kernel sends what cpn has no part in. */
export function describeElsewhere(way: KernelRoute): Check {
  return way.link === null
    ? stops('route', describeRefusal(way), 'give this host a route there')
    : passes('route', way.local ? 'stays on this host' : describeWay(way));
}

/** Where the kernel sends a packet that this network does not carry. */
export function describeInstead(way: KernelRoute): Check {
  return leavesOpen('route', way.link === null ? describeRefusal(way) : describeWay(way));
}

/** `leaves by eth0 via 203.0.113.1 from 203.0.113.22, by the route to 192.168.50.0/24`. */
export function describeWay({ link, local, source, gateway, table, prefix, protocol }: TakenRoute): string {
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

/** Why no packet can enter the interface or come from its address; null when some can. */
function describeLack({ desired, actual, address: own }: View): string | null {
  const { link } = desired;
  if (actual.link === null) return `there is no interface ${link}`;
  if (!actual.link.up) return `${link} is down`;
  const present = actual.link.addresses.some(({ address }) => address === own);
  return present ? null : `${link} does not have the address ${own}`;
}

const reconcile = '"cpn reconcile" puts it right';
const routeToLan = 'give this connector a route to its LAN';

function refused(way: RefusedRoute, target: Target, link: string): Check {
  const problem = describeRefusal(way);
  if (way.why !== 'none') {
    const place = goesThrough(target) ? `the one into ${link}` : 'the one to the LAN';
    return stops('route', problem, `take away that route or rule, which stands before ${place}`);
  }
  return stops('route', problem, goesThrough(target) ? reconcile : routeToLan);
}

/** A route that this host serves leads to its LAN, and never back into the tunnel. */
function checkOwnLan(way: TakenRoute, link: string): Check {
  if (way.link !== link) return passes('route', describeWay(way));
  return stops('route', `${describeWay(way)}, back into the tunnel`, routeToLan);
}

/** Says who draws a packet away that belongs into the tunnel: another address, a rule, or a route. */
function drawnAway(address: Address, view: View, way: TakenRoute): Check {
  const { link } = view.desired;
  if (way.local) return stops('route', 'this host has that address itself', 'take the address away from this host');
  const instead = `${describeWay(way)}, not into ${link}`;
  if (way.prefix === null)
    return stops(
      'route',
      instead,
      `find the route that leads there; "cpn down ${link}" and "cpn up ${link}" make ours anew`,
    );
  const wanted = findWantedRoute(address, view);
  // Another route of the same prefix wins by its metric, a narrower one in any case.
  if (wanted !== null && way.table === routingTableOf(wanted) && lengthOf(way.prefix) >= lengthOf(wanted))
    return stops('route', instead, `take away the route to ${way.prefix} by ${way.link}, or narrow it`);
  const rule = findForeignRule(address, way.table, view);
  if (rule) {
    const because = `${instead}; the policy rule "${rule.priority}: ${formatRule(rule)}" leads there`;
    return stops('route', because, 'take away that rule, or narrow it');
  }
  return stops('route', wanted === null ? instead : `${instead}: the way by ${wanted} is gone`, reconcile);
}

/** A rule of somebody else's that leads a packet without a source of its own to a table. */
function findForeignRule(address: Address, table: string, { desired, actual }: View): Rule | undefined {
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
function findWantedRoute(address: Address, { desired, actual }: View): Prefix | null {
  const subnets = (actual.link?.addresses ?? []).map((each) => maskPrefix(formatInterfaceAddress(each)));
  const covering = [...desired.routes, ...subnets].filter((prefix) => covers(prefix, address));
  return covering.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0] ?? null;
}
