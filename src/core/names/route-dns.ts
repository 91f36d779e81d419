import { InvalidValue } from '../errors/index.ts';
import type { NetworkMap, ProvidedRemarks, RouteDns } from '../map/model.ts';
import { covers, lengthOf, tryParseAddress } from '../net/cidr.ts';
import { parseDomain } from './domain.ts';

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
