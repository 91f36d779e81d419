import type { AdminService } from '../../api/admin-service.ts';
import type { RouteDns } from '../../contract/network.ts';
import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import { findMistake, parseDomain } from '../../core/names/domain.ts';
import { parseDnsServer } from '../../core/names/route-dns.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
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
  const [, prefix, list] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  const example = 'write it like 192.168.50.0/24=192.168.50.53,corp.example';
  const refuse = (rule: string, remedy = example) => new InvalidValue(name, text, rule, remedy);
  if (prefix === undefined || list === undefined) throw refuse('has no "="');
  if (prefix.trim() === '') throw refuse('names no route');
  const items = list.split(',').map((item) => item.trim());
  const given = items.filter((item) => item !== '');
  const [servers, domains] = [given.filter(isServer), given.filter((item) => !isServer(item))];
  if (given.length === 0) throw refuse('names no DNS server and no domain');
  if (given.length < items.length) throw refuse('has an empty item');
  if (servers.length === 0) throw refuse('names no DNS server');
  if (domains.length === 0) throw refuse('names no domain');
  if (servers.length > mostServers) throw refuse(`names ${servers.length} DNS servers`, `give ${mostServers} at most`);
  if (domains.length > mostDomains) throw refuse(`names ${domains.length} domains`, `give ${mostDomains} at most`);
  const route = parsePrefix(prefix.trim(), name);
  return {
    route,
    dns_servers: servers.map((item) => String(parseDnsServer(item, name, route))),
    domains: domains.map((item) => parseDomain(item, name)),
  };
}

/** True for anything with an address in it, such as a URL. */
function isServer(item: string): boolean {
  const text = (findMistake(item)?.rest ?? item).replace(/\/[0-9]+$/, '');
  return /^[0-9.]+$|:/.test(text);
}
