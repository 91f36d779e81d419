import type { RouteDns } from '../../contract/network.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import { parseDomain } from '../../core/names/domain.ts';
import { parseDnsServer } from '../../core/names/route-dns.ts';
import { isReserved } from '../../core/names/split-dns.ts';
import { type Prefix, parsePrefix } from '../../core/net/cidr.ts';
import type { ReadField } from './field-rules.ts';

/**
 * Parses the domains behind routes. Each route has one entry, and each domain is in one.
 *
 * @param routes of the network; null if they break a rule, so that none is checked against them
 * @param isPublicSuffix from loadPublicSuffixes
 */
export function readRouteDns(
  read: ReadField,
  entries: readonly RouteDns[],
  routes: readonly Prefix[] | null,
  isPublicSuffix: (domain: string) => boolean,
): RouteDns[] {
  const entryOf = new Map<Prefix, number>();
  const routeOf = new Map<string, Prefix>();
  return entries.flatMap((entry, index) => {
    const at = `route_dns.${index}`;
    const parsed = read(() => {
      const route = parseRoute(entry.route, `${at}.route`, routes);
      const earlier = entryOf.get(route);
      if (earlier !== undefined) {
        throw new InvalidValue(
          `${at}.route`,
          entry.route,
          `has an entry already, route_dns.${earlier}`,
          'put its servers and domains into one',
        );
      }
      entryOf.set(route, index);
      const dns_servers = entry.dns_servers.map((text, place) =>
        parseDnsServer(text, `${at}.dns_servers.${place}`, route),
      );
      const twice = dns_servers.findIndex((server, place) => dns_servers.indexOf(server) !== place);
      if (twice !== -1) {
        throw new InvalidValue(`${at}.dns_servers.${twice}`, dns_servers[twice], 'is listed twice', 'list it once');
      }
      const domains = entry.domains.map((text, place) => {
        const field = `${at}.domains.${place}`;
        const domain = parseDomain(text, field);
        if (isReserved(domain)) {
          throw new InvalidValue(field, text, 'is reserved', 'give a domain that the DNS servers of the LAN have');
        }
        if (isPublicSuffix(domain)) {
          const rule = 'is a public suffix, under which anyone may register names';
          throw new InvalidValue(field, text, rule, `give a domain below it, such as corp.${domain}`);
        }
        const other = routeOf.get(domain);
        if (other !== undefined) {
          throw new InvalidValue(field, text, `is a domain of ${other} already`, 'list it once in the network');
        }
        routeOf.set(domain, route);
        return domain;
      });
      return { route, dns_servers, domains };
    });
    return parsed ?? [];
  });
}

/** Leaves out the entries of routes that the network lacks. */
export function ofRoutes(entries: readonly RouteDns[], routes: readonly string[]): RouteDns[] {
  return entries.filter(({ route }) => routes.includes(route));
}

function parseRoute(text: string, field: string, routes: readonly Prefix[] | null): Prefix {
  const route = parsePrefix(text, field);
  if (routes === null || routes.includes(route)) return route;
  const remedy = `its routes are ${routes.join(', ') || 'none'}; add the route, or leave this entry out`;
  throw new InvalidValue(field, text, 'is not a route of the network', remedy);
}
