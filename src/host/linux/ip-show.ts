import { type Address, maskPrefix, type Prefix } from '../../core/cidr.ts';
import { keepSame, rememberLast, sameList } from '../../core/keep-same.ts';
import { routeProtocol } from '../../core/marks.ts';
import type { InterfaceAddress } from '../../core/model.ts';
import { perObject } from '../../core/per-object.ts';
import type { Rule } from '../../core/rule.ts';
import { readAddress, readPrefix } from '../read-address.ts';
import { readRule } from './read-rule.ts';
import { type Entry, isEntry, listOf, nameProtocol, nameTable, notShown, numberOf } from './shown-entry.ts';

/** What `ip` tells of all links, of the routes of all tables, and of the IPv4 policy rules. */
export interface Shown {
  readonly links: readonly ShownLink[];
  readonly routes: readonly ShownRoute[];
  readonly rules: readonly Rule[];
}

export interface ShownLink {
  readonly name: string;
  readonly mtu: number;
  readonly up: boolean;
  readonly loopback: boolean;
  readonly alias: string | null;
  /** What kind of virtual interface it is; null for a network card. */
  readonly kind: string | null;
  readonly addresses: readonly ShownAddress[];
}

export interface ShownAddress extends InterfaceAddress {
  /** The range that is on-link: around the other end, where the link has one. */
  readonly subnet: Prefix;
}

export interface ShownRoute {
  readonly prefix: Prefix;
  readonly table: string;
  readonly protocol: string;
  /** The links that it leads into: more than one for a multipath route. */
  readonly links: readonly string[];
  readonly gateways: readonly Address[];
  /** The route's own MTU, where it has one. */
  readonly mtu: number | null;
}

/**
 * One process for everything. Details because aliases are among them; numbers instead of names because a host may have
 * named any table or protocol; and a call for each family because both print their default route as `default`. IPv6 has rules of
 * its own, which a batch cannot ask for beside those of IPv4.
 */
export const showArgs = ['-json', '-details', '-Numeric', '-batch', '-'];
export const showInput = `address show
route show table all type unicast root 0.0.0.0/0
route show table all type unicast root ::/0
rule show
`;

/** Parses what `ip` prints for {@link showInput}: four lines, each a JSON array (ip-address(8), ip-route(8), ip-rule(8)). */
export function parseShown(text: string): Shown {
  return shownReader()(text);
}

/** Parses one such text after the other: a part that is as it was last time is the very object, and costs nothing. */
export function shownReader(): (text: string) => Shown {
  const readLinks = rememberLast((line) =>
    parseList(line)
      .filter((entry) => typeof entry.ifname === 'string')
      .map(readLink),
  );
  const readFour = rememberLast((line) => readRoutes(line, '0.0.0.0/0'));
  const readSix = rememberLast((line) => readRoutes(line, '::/0'));
  const readRules = rememberLast((line) => parseList(line).map(readRule));
  const keep = keepSame<Shown>(
    (one, other) => one.links === other.links && one.routes === other.routes && one.rules === other.rules,
  );
  const join = keepSame<readonly (readonly ShownRoute[])[]>(sameList);
  const flatten = perObject((lists: readonly (readonly ShownRoute[])[]) => lists.flat());
  return (text) => {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    const [links = '', four = '', six = '', rules = ''] = lines;
    if (lines.length !== 4) throw notShown('has not four lines');
    const routes = flatten(join([readFour(four), readSix(six)]));
    return keep({ links: readLinks(links), routes, rules: readRules(rules) });
  };
}

function readRoutes(line: string, whole: string): readonly ShownRoute[] {
  return parseList(line)
    .filter((entry) => isUnicast(entry) && !isForEchoes(entry))
    .map((entry) => readRoute(entry, maskPrefix(whole)));
}

function readLink(entry: Entry): ShownLink {
  const flags = listOf(entry.flags);
  return {
    name: String(entry.ifname),
    mtu: numberOf(entry.mtu, 'mtu'),
    up: flags.includes('UP'),
    loopback: flags.includes('LOOPBACK'),
    alias: typeof entry.ifalias === 'string' ? entry.ifalias : null,
    kind: isEntry(entry.linkinfo) && typeof entry.linkinfo.info_kind === 'string' ? entry.linkinfo.info_kind : null,
    addresses: listOf(entry.addr_info).filter(isEntry).flatMap(readLinkAddress),
  };
}

function readLinkAddress({ local, address: other, prefixlen }: Entry): ShownAddress[] {
  const address = readAddress(String(local));
  if (address === null) return [];
  const length = numberOf(prefixlen, 'prefixlen');
  return [{ address, length, subnet: readPrefix(`${readAddress(String(other)) ?? address}/${length}`) }];
}

function isUnicast({ type, dst }: Entry): boolean {
  return (type === undefined || type === '1' || type === 'unicast') && typeof dst === 'string';
}

/** Our own routes for a type of service are there for a while, and nothing but echoes takes them. */
function isForEchoes({ tos, protocol }: Entry): boolean {
  return tos !== undefined && protocol === routeProtocol;
}

function readRoute(entry: Entry, whole: Prefix): ShownRoute {
  const hops = [entry, ...listOf(entry.nexthops).filter(isEntry)];
  const [metrics] = listOf(entry.metrics).filter(isEntry);
  return {
    prefix: entry.dst === 'default' ? whole : readPrefix(String(entry.dst)),
    table: nameTable(entry.table ?? 'main'),
    protocol: nameProtocol(entry.protocol ?? 'boot'),
    links: hops.flatMap((hop) => (typeof hop.dev === 'string' ? [hop.dev] : [])),
    gateways: hops.flatMap((hop) => readGateway(hop) ?? []),
    mtu: typeof metrics?.mtu === 'number' ? metrics.mtu : null,
  };
}

/** An IPv4 route may go by an IPv6 gateway, which is then printed as `via`. */
function readGateway({ gateway, via }: Entry): Address | null {
  const text = gateway ?? (isEntry(via) ? via.host : undefined);
  return typeof text === 'string' ? readAddress(text) : null;
}

function parseList(line: string): readonly Entry[] {
  try {
    // `ip` prints control characters of a link's alias as they are, which JSON forbids.
    const value: unknown = JSON.parse(line.replace(/\p{Cc}/gu, ' '));
    if (Array.isArray(value)) return value.filter(isEntry);
  } catch {}
  throw notShown('is not a list in JSON');
}
