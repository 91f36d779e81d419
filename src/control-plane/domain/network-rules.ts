import { InvalidValue } from '../../core/errors/index.ts';
import {
  type Address,
  addressOf,
  comparePrefixes,
  covers,
  familyOf,
  hostPrefix,
  lengthOf,
  overlaps,
  type Prefix,
  parsePrefix,
} from '../../core/net/cidr.ts';
import { formatEndpoint, isLiteral, parseEndpoint, unusableAddress } from '../../core/net/endpoint.ts';
import { notTag, tagPattern } from '../../core/rules/selector.ts';

export interface NetworkRanges {
  readonly range: Prefix | null;
  readonly routes: readonly Prefix[];
}

/** Parses the range of a network: canonical, private, IPv4, /8 to /30. */
export function parsePrivateRange(text: string): Prefix {
  const field = 'private_cidr';
  const range = parsePrefix(text, field);
  if (!privateRanges.some((outer) => covers(outer, range))) throw new InvalidValue(field, text, notPrivate);
  if (lengthOf(range) > 30) throw new InvalidValue(field, text, 'has no room for two peers', 'make it /30 or wider');
  return range;
}

/** Parses the routes of a network. Public routes and the default route need `allowPublic`. */
export function parseRoutes(
  texts: readonly string[],
  network: Prefix | null,
  allowPublic: boolean,
  field = 'routes',
): Prefix[] {
  const routes = texts.map((text) => parseRoute(text, network, allowPublic, field));
  const twice = routes.find((route, index) => routes.indexOf(route) !== index);
  if (twice !== undefined) throw new InvalidValue(field, twice, 'is listed twice');
  return routes;
}

/** Parses the routes that a connector serves, which must be routes of its network. */
export function parseServedRoutes(texts: readonly string[], offered: readonly Prefix[]): Prefix[] {
  const served = texts.map((text) => parsePrefix(text, 'routes'));
  const strange = served.find((route) => !offered.includes(route));
  if (strange !== undefined) throw new InvalidValue('routes', strange, 'is not a route of the network');
  return [...new Set(served)];
}

/**
 * Parses the prefixes that a connector takes out of service: routes, and the network's range for
 * relaying. Sorted, so that equal sets have equal texts.
 */
export function parseWithdrawn(texts: readonly string[], { range, routes }: NetworkRanges): Prefix[] {
  const withdrawn = texts.map((text) => parsePrefix(text, 'withdrawn'));
  const strange = withdrawn.find((prefix) => prefix !== range && !routes.includes(prefix));
  if (strange !== undefined) {
    throw new InvalidValue('withdrawn', strange, 'is neither a route of the network nor its private_cidr');
  }
  return [...new Set(withdrawn)].sort(comparePrefixes);
}

/** Parses the tags of a peer or key. Sorted, so that equal sets have equal texts; null for none. */
export function parseTags(texts: readonly string[]): string[] | null {
  const strange = texts.find((text) => !tagPattern.test(text));
  if (strange !== undefined) throw new InvalidValue('tags', strange, notTag);
  return texts.length === 0 ? null : [...new Set(texts)].sort();
}

/**
 * Describes the range that would lead packets for an endpoint into the tunnel; null for none. The
 * default route does not count, because hosts exclude endpoints from it.
 */
export function coveringRoute(endpoint: string, { range, routes }: NetworkRanges): string | null {
  const { host } = parseEndpoint(endpoint);
  const address = isLiteral({ host, port: 1 }) ? hostPrefix(host as Address) : null;
  if (address === null) return null;
  if (range !== null && covers(range, address)) return `the network's own range ${range}`;
  const route = routes.find((each) => each !== defaultRoute && covers(each, address));
  return route === undefined ? null : `the route ${route}`;
}

export function checkEndpointOutside(endpoint: string, network: NetworkRanges): void {
  const covering = coveringRoute(endpoint, network);
  if (covering === null) return;
  const remedy = 'give an address outside the network, or none';
  throw new InvalidValue('endpoint', endpoint, `lies in ${covering}, which leads into the tunnel`, remedy);
}

/**
 * Parses and normalizes an endpoint. Addresses out of reach of other hosts need `allowUnusable`.
 */
export function parsePeerEndpoint(text: string, allowUnusable: boolean): string {
  const endpoint = parseEndpoint(text, 'endpoint');
  const isLocal = /(^|\.)localhost$/.test(endpoint.host);
  const reason = isLiteral(endpoint) ? unusableAddress(endpoint.host) : isLocal ? 'loopback' : null;
  if (reason !== null && !allowUnusable) {
    throw new InvalidValue('endpoint', text, `is ${reason}`, 'give an address that the other peers can reach');
  }
  return formatEndpoint(endpoint);
}

function parseRoute(text: string, network: Prefix | null, allowPublic: boolean, field: string): Prefix {
  const route = parsePrefix(text, field);
  if (allowPublic && route === defaultRoute) return route;
  if (familyOf(route) !== 4 || lengthOf(route) === 0) throw new InvalidValue(field, text, notPrivate);
  if (network !== null && overlaps(route, network)) {
    throw new InvalidValue(field, text, `overlaps the network's own range ${network}`);
  }
  if (privateRanges.some((outer) => covers(outer, route))) return route;
  if (!allowPublic) throw new InvalidValue(field, text, notPrivate);
  const special = neverRouted.find((range) => overlaps(range, route));
  if (special) throw new InvalidValue(field, text, `is ${unusableAddress(addressOf(special))} or holds such addresses`);
  return route;
}

const privateRanges = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'].map((text) =>
  parsePrefix(text),
);
const notPrivate = `is not an IPv4 range inside ${privateRanges.join(', ')}; public routes need a control plane with --allow-public-routes`;
const defaultRoute = parsePrefix('0.0.0.0/0');
/** Loopback, link-local, multicast and the like. A route to them is always a mistake. */
const neverRouted = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4'].map((text) =>
  parsePrefix(text),
);
