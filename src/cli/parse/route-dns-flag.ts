import type { AdminService } from '../../api/admin-service.ts';
import type { RouteDns } from '../../contract/network.ts';
import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import { parseDomain } from '../../core/names/domain.ts';
import { parseAddress, parsePrefix } from '../../core/net/cidr.ts';
import type { Flag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

/** The limits of the contract, so that a refusal names the flag. */
const [mostEntries, mostServers, mostDomains] = [16, 3, 16];

export const routeDnsFlag = {
  kind: 'list',
  value: 'ROUTE=SERVER[,SERVER],DOMAIN[,DOMAIN]',
  summary: 'DNS servers in a route, and the domains that hosts resolve there',
} as const satisfies Flag;

/** All entries, none for "none". Undefined without the flag. @throws InvalidValue or WrongUsage */
export function readRouteDns(input: Input): RouteDns[] | undefined {
  const [texts, name] = [input.each('route-dns'), input.nameOf('route-dns')];
  if (texts.length === 0) return undefined;
  if (texts.includes('none')) {
    if (texts.length === 1) return [];
    throw new WrongUsage(`${name} none excludes other values; give it alone, or leave it out`);
  }
  if (texts.length <= mostEntries) return texts.map((text) => parseEntry(text, name));
  throw new WrongUsage(`${name} was given ${texts.length} times; give it ${mostEntries} times at most`);
}

/** Refuses if the service does not describe domains: it would ignore the field. */
export async function requireRouteDns(service: AdminService): Promise<void> {
  if (await service.describes('network-route-dns')) return;
  throw new WrongUsage('this control plane does not support domains behind routes; leave out --route-dns');
}

function parseEntry(text: string, name: string): RouteDns {
  const [, route, list] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  const example = 'write it like 192.168.50.0/24=192.168.50.53,corp.example';
  if (route === undefined || list === undefined) throw new InvalidValue(name, text, 'has no "="', example);
  const items = list.split(',').map((item) => item.trim());
  const isServer = (item: string) => /^[\d.]+$|:/.test(item);
  const entry = {
    route: parsePrefix(route.trim(), name),
    dns_servers: items.filter(isServer).map((item) => String(parseAddress(item, name))),
    domains: items.filter((item) => !isServer(item)).map((item) => parseDomain(item, name)),
  };
  if (entry.dns_servers.length === 0) throw new InvalidValue(name, text, 'names no DNS server', example);
  if (entry.domains.length === 0) throw new InvalidValue(name, text, 'names no domain', example);
  if (entry.dns_servers.length > mostServers) {
    throw new InvalidValue(name, text, `names ${entry.dns_servers.length} DNS servers`, `give ${mostServers} at most`);
  }
  if (entry.domains.length > mostDomains) {
    throw new InvalidValue(name, text, `names ${entry.domains.length} domains`, `give ${mostDomains} at most`);
  }
  return entry;
}
