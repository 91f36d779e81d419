import { InvalidValue } from '../errors/index.ts';
import type { NetworkMap, ProvidedRemarks, RouteDns } from '../map/model.ts';
import {
  type Address,
  addressAt,
  covers,
  familyOf,
  lengthOf,
  type Prefix,
  parseAddress,
  rangeOf,
  tryParseAddress,
} from '../net/cidr.ts';
import { findMistake, parseDomain } from './domain.ts';

/** The domains behind the routes of a network, from its map or from its wg-quick text. */
export function routeDnsOf(map: NetworkMap, text: ProvidedRemarks | undefined): readonly RouteDns[] {
  return map.routeDns ?? (text === undefined ? [] : readProvided(map, text.dns));
}

/**
 * The servers and search domains of `DNS` in wg-quick(8). wg-quick itself would send all names to
 * these servers; without a domain, none is sent.
 */
function readProvided({ cidr, routes }: NetworkMap, words: readonly string[]): readonly RouteDns[] {
  const servers = words.map(tryParseAddress).filter((address) => address !== null);
  const domains = [...new Set(words.filter((word) => tryParseAddress(word) === null).flatMap(readDomain))];
  // The longest first: a server in a route of its own is also in a default route.
  const prefixes = [cidr, ...routes].toSorted((one, other) => lengthOf(other) - lengthOf(one));
  const [first] = servers;
  const route = first && prefixes.find((prefix) => covers(prefix, first));
  if (route === undefined || domains.length === 0) return [];
  return [{ route, servers: servers.filter((server) => covers(route, server)), domains }];
}

function readDomain(word: string): string[] {
  try {
    return [parseDomain(word)];
  } catch (error) {
    if (error instanceof InvalidValue) return [];
    throw error;
  }
}

/** Parses a DNS server behind a route: an IPv4 address that a host in the route may have. */
export function parseDnsServer(text: string, field: string, route: Prefix): Address {
  const mistake = findMistake(text) ?? findLength(text);
  if (mistake !== null) {
    const { rule, rest } = mistake;
    const remedy =
      tryParseAddress(rest) === null
        ? 'write an IPv4 address such as 192.168.50.53'
        : `write ${rest}; hosts send queries to port 53`;
    throw new InvalidValue(field, text, rule, remedy);
  }
  const server = parseAddress(text, field);
  const remedy = 'give a DNS server in the route';
  if (familyOf(server) !== 4) throw new InvalidValue(field, text, 'is not an IPv4 address', remedy);
  if (!covers(route, server)) throw new InvalidValue(field, text, `is outside the route ${route}`, remedy);
  const { first, last } = rangeOf(route);
  // Each address of a /31 is a host's (RFC 3021).
  const special = lengthOf(route) > 30 ? [] : [addressAt(first), addressAt(last)];
  if (!special.includes(server)) return server;
  const kind = server === special[0] ? 'network' : 'broadcast';
  throw new InvalidValue(field, text, `is the ${kind} address of ${route}`, remedy);
}

function findLength(text: string) {
  const [, rest] = /^([0-9a-f.:]+)\/[0-9]+$/i.exec(text) ?? [];
  return rest === undefined ? null : { rule: 'is an address range', rest };
}
