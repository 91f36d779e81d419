import { InvalidValue, WrongUsage } from '../errors/index.ts';
import {
  type Address,
  addressAt,
  addressOf,
  covers,
  familyOf,
  hostPrefix,
  lengthOf,
  overlaps,
  type Prefix,
  parsePrefix,
  rangeOf,
  restorePrefix,
} from '../net/cidr.ts';
import { findSpecialKind } from '../net/special-ranges.ts';
import type { NetworkMap } from './model.ts';

/** A route of the network, and the prefix behind a connector that it stands for: 1:1. */
export interface PrefixMap {
  readonly route: Prefix;
  /** Of the same length. The route itself if it is not mapped. */
  readonly local: Prefix;
}

/** The most routes that our control plane allows in a network. */
export const mostMaps = 50;

/** Parses `ROUTE=LOCAL`, such as `10.201.1.0/24=192.168.1.0/24`. @throws InvalidValue */
export function parsePrefixMap(text: string, field = 'map'): PrefixMap {
  const [route, local, ...more] = text.split('=').map((part) => part.trim());
  if (route === undefined || local === undefined || more.length > 0)
    throw new InvalidValue(field, text, 'is not a map of two prefixes', 'write it like 10.201.1.0/24=192.168.1.0/24');
  const parsed = { route: parsePrefix(route, field), local: parsePrefix(local, field) };
  const problem = findProblem(parsed);
  if (problem !== null) throw new InvalidValue(field, text, problem);
  return parsed;
}

/** Formats a map for {@link parsePrefixMap}. */
export function formatPrefixMap({ route, local }: PrefixMap): string {
  return `${route}=${local}`;
}

function findProblem({ route, local }: PrefixMap): string | null {
  if (familyOf(route) === 6 || familyOf(local) === 6) return 'has IPv6 addresses, and only IPv4 can be mapped';
  if (lengthOf(route) !== lengthOf(local)) return 'has prefixes of different lengths, and each address needs one';
  if (overlaps(route, local)) return 'has prefixes that overlap';
  const special = [route, local].find((prefix) => findSpecialKind(prefix) !== null);
  return special === undefined ? null : `maps ${special}, which ${findSpecialKind(special)}`;
}

/**
 * Checks maps that are to apply together. An address must have one meaning on each side.
 *
 * @throws WrongUsage for prefixes that overlap, and for too many maps
 */
export function checkMaps(maps: readonly PrefixMap[]): void {
  if (maps.length > mostMaps)
    throw new WrongUsage(`${maps.length} prefixes would be mapped; at most ${mostMaps} can be`);
  const sides = maps.flatMap((map) => [map.route, map.local].map((prefix) => ({ map, prefix })));
  for (const [place, one] of sides.entries()) {
    const other = sides.slice(0, place).find(({ map, prefix }) => map !== one.map && overlaps(prefix, one.prefix));
    if (other === undefined) continue;
    const [first, second] = [formatPrefixMap(other.map), formatPrefixMap(one.map)];
    throw new WrongUsage(
      `--map ${second} and --map ${first} overlap in ${one.prefix}; each address can be in one map only`,
    );
  }
}

/**
 * Returns each route with the prefix behind this host to which it leads. A route inside that of a
 * map leads to the same part of its local prefix.
 */
export function behindRoutes(routes: readonly Prefix[], maps: readonly PrefixMap[]): PrefixMap[] {
  return routes.map((route) => {
    const map = maps.find((each) => covers(each.route, route));
    if (map === undefined) return { route, local: route };
    const first = translate(addressOf(route), map.route, map.local);
    return { route, local: restorePrefix(`${first}/${lengthOf(route)}`) };
  });
}

/** Returns the mapped routes that are inside no other one: they map the others too. */
export function widestMaps(behind: readonly PrefixMap[]): PrefixMap[] {
  const mapped = behind.filter(isMapped);
  return mapped.filter(({ route }) => !mapped.some((other) => other.route !== route && covers(other.route, route)));
}

export function isMapped({ route, local }: PrefixMap): boolean {
  return route !== local;
}

/** Moves an address from one prefix to the same offset in another of the same length. */
export function translate(address: Address, from: Prefix, to: Prefix): Address {
  return addressAt(rangeOf(to).first + rangeOf(hostPrefix(address)).first - rangeOf(from).first);
}

/** The prefixes behind this host, as its own routes and packet rules have them. */
export function localsOf(routes: readonly Prefix[], maps: readonly PrefixMap[]): Prefix[] {
  return behindRoutes(routes, maps).map(({ local }) => local);
}

/**
 * Finds served routes that this host cannot serve because of a map, each with the reason:
 * - A route that overlaps a mapped LAN would reach the LAN by its own addresses.
 * - A map to a LAN that overlaps the network's range would hide peers.
 */
export function findMapConflicts(
  { cidr }: Pick<NetworkMap, 'cidr'>,
  served: readonly Prefix[],
  maps: readonly PrefixMap[],
): ReadonlyMap<Prefix, string> {
  const behind = behindRoutes(served, maps);
  const mapped = behind.filter(isMapped);
  return new Map(
    behind.flatMap((each): [Prefix, string][] => {
      if (isMapped(each)) {
        const { route, local } = each;
        return overlaps(local, cidr) ? [[route, `is mapped to ${local}, which overlaps the network ${cidr}`]] : [];
      }
      if (lengthOf(each.route) === 0) return [];
      const hidden = mapped.find(({ local }) => overlaps(local, each.route));
      return hidden ? [[each.route, `overlaps ${hidden.local}, which this host serves as ${hidden.route}`]] : [];
    }),
  );
}
