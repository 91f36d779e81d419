import type { Actual, Link, Route } from './actual.ts';
import { added, type Change, removed, updated } from './change.ts';
import { familyOf, type Prefix } from './cidr.ts';
import type { Desired } from './desired.ts';
import { routingTableOf } from './full-tunnel.ts';
import { routeProtocol, tunnelTable } from './marks.ts';
import { formatInterfaceAddress, type InterfaceAddress, onLinkRange } from './model.ts';
import { planRules } from './plan-rules.ts';
import type { LinkCommand, Step } from './step.ts';

/** Makes the interface where there is none. */
export function planCreation({ link }: Desired, actual: Actual): Step[] {
  if (actual.link !== null) return [];
  return [{ do: 'create-link', link, changes: [added('interface', link, 'wireguard', 'the interface is not there')] }];
}

/** Mark, MTU, addresses, state, routes and policy rules of the interface, as one batch. */
export function planSettings(desired: Desired, actual: Actual): Step[] {
  // A rule leads to a route that is there: it is added after the routes, and goes before them.
  const routes = planRoutes(desired, actual);
  const rules = planRules(desired, actual);
  const commands: Planned[] = [
    ...planMark(desired, actual),
    ...planMtu(desired, actual),
    ...planAddresses(desired, actual.link),
    ...planUp(desired, actual),
    ...planRange(desired, actual),
    ...routes.filter(adds),
    ...rules,
    ...routes.filter((each) => !adds(each)),
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

/** A command and the change it makes; what follows from making the interface is no change of its own. */
type Planned = readonly [LinkCommand, Change | null];

function adds([command]: Planned): boolean {
  return 'add' in command;
}

function planMark({ alias }: Desired, { link }: Actual): Planned[] {
  return link === null ? [[{ set: 'alias', value: alias }, null]] : [];
}

function planMtu({ link, config: { mtu } }: Desired, actual: Actual): Planned[] {
  if (actual.link?.mtu === mtu) return [];
  const before = actual.link?.mtu;
  const change = before === undefined ? null : updated('interface', link, { mtu: before }, { mtu }, 'the MTU differs');
  return [[{ set: 'mtu', value: mtu }, change]];
}

function planUp({ link }: Desired, actual: Actual): Planned[] {
  if (actual.link?.up) return [];
  const change = actual.link && updated('interface', link, { state: 'down' }, { state: 'up' }, 'the interface is down');
  return [[{ set: 'up' }, change]];
}

/**
 * Removals come first here: of two addresses in one subnet the kernel makes the second a secondary one, and drops the
 * secondaries with the primary.
 */
function planAddresses({ link, config }: Desired, actual: Link | null): Planned[] {
  const present = actual?.addresses.filter((address) => !isLinkLocal(address)) ?? [];
  const surplus = present.filter((address) => !isSameAddress(address, config.address));
  const removals = surplus.map((address): Planned => {
    const target = formatInterfaceAddress(address);
    return [{ remove: 'address', address }, removed('address', target, link, 'not the address of this peer')];
  });
  if (surplus.length < present.length) return removals;
  const target = formatInterfaceAddress(config.address);
  const reason = "the peer's address is not on the interface";
  return [...removals, [{ add: 'address', address: config.address }, added('address', target, link, reason)]];
}

/**
 * The kernel makes the route to the range of an address with the address or when the interface goes up (fib_add_ifaddr in
 * net/ipv4/fib_frontend.c), and never again.
 */
function planRange(desired: Desired, actual: Actual): Planned[] {
  const { address } = desired.config;
  const range = onLinkRange(address);
  const isMade = actual.link?.up && actual.link.addresses.some((each) => isSameAddress(each, address));
  if (range === null || !isMade || actual.onLink.includes(range)) return [];
  const reason = 'the route to the range of the address is gone';
  return [planRoute(desired, actual, { add: 'route', prefix: range, source: address.address }, reason)];
}

function planRoutes(desired: Desired, actual: Actual): Planned[] {
  const { link, routes, config } = desired;
  // With its last IPv4 address an interface loses all its IPv4 routes (fib_disable_ip in net/ipv4/fib_frontend.c).
  const keepsAddress = actual.link?.addresses.some((each) => isSameAddress(each, config.address)) ?? false;
  const present = actual.routes.filter(
    ({ table, prefix }) => (table === 'main' || table === tunnelTable) && (keepsAddress || familyOf(prefix) === 6),
  );
  const wanted = new Set(routes);
  const range = onLinkRange(config.address);
  const isWanted = ({ prefix, table }: Route) =>
    (wanted.has(prefix) && table === routingTableOf(prefix)) || (prefix === range && table === 'main');
  const kept = new Set<Prefix>(present.filter(isWanted).map((route) => route.prefix));
  const additions = [...wanted]
    .filter((prefix) => !kept.has(prefix))
    .map((prefix) =>
      planRoute(desired, actual, { add: 'route', prefix, table: routingTableOf(prefix) }, 'a peer serves it'),
    );
  const removals = present
    .filter((route) => !isWanted(route) && isOurRoute(route.protocol))
    .map(({ prefix, protocol, table }): Planned => {
      const why = wanted.has(prefix) ? 'it is in another table' : 'no peer serves it';
      return [{ remove: 'route', prefix, protocol, table }, removed('route', prefix, wayTo(link, table), why)];
    });
  return [...additions, ...removals];
}

/** Adds a route, or takes it over. */
function planRoute({ link, later }: Desired, actual: Actual, command: AddRoute, reason: string): Planned {
  const { prefix, table = 'main' } = command;
  const holder = table === 'main' ? findHolder(prefix, later, actual) : null;
  if (holder === null) return [command, added('route', prefix, wayTo(link, table), reason)];
  const right = 'the network that was joined earlier has the right of way';
  return [{ ...command, replaces: true }, updated('route', prefix, holder, link, right)];
}

type AddRoute = Extract<LinkCommand, { add: 'route' }>;

/** The later network's interface that this very prefix leads into; the kernel takes no second route to it. */
function findHolder(prefix: Prefix, later: readonly string[], { surroundings }: Actual): string | null {
  const ways = [...surroundings.routed, ...surroundings.connected];
  return ways.find((way) => way.prefix === prefix && later.includes(way.link))?.link ?? null;
}

function wayTo(link: string, table: string): string {
  return table === 'main' ? link : `${link} table ${table}`;
}

/** On our own interface wg-quick's routes (`boot`) stand for ours; those of a routing daemon are its own. */
function isOurRoute(protocol: string): boolean {
  return protocol === routeProtocol || protocol === 'boot';
}

function isSameAddress(one: InterfaceAddress, other: InterfaceAddress): boolean {
  return one.address === other.address && one.length === other.length;
}

function isLinkLocal({ address }: InterfaceAddress): boolean {
  return address.startsWith('fe80:');
}
