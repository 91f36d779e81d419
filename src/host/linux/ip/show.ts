import type { ThrowRoute } from '../../../core/host-state/actual.ts';
import { routeProtocol } from '../../../core/host-state/marks.ts';
import type { Rule } from '../../../core/host-state/policy-rule.ts';
import { type Address, type InterfaceAddress, maskPrefix, type Prefix } from '../../../core/net/cidr.ts';
import { isRouteTable } from '../../../core/routing/route-table.ts';
import { memoizeLast } from '../../../core/util/memo.ts';
import { readAddress, readPrefix } from '../../read-address.ts';
import {
  asList,
  invalidIpOutput,
  isEntry,
  type JsonEntry,
  numberOf,
  protocolName,
  readGateway,
  tableName,
} from './json-entry.ts';

/** The output of `ip` for all links, the routes of all tables, and the IPv4 policy rules. */
export interface ShownByIp {
  readonly links: readonly ShownLink[];
  readonly routes: readonly ShownRoute[];
  readonly rules: readonly Rule[];
  /** The prefixes to which the main table refuses packets. */
  readonly refusing: readonly Prefix[];
  /** Our `throw` routes in tables of accepted routes. */
  readonly throwRoutes: readonly ThrowRoute[];
}

export interface ShownLink {
  readonly index: number;
  readonly name: string;
  readonly mtu: number;
  readonly up: boolean;
  /** False for a bridge without a member, and for a card without a cable. */
  readonly carrier: boolean;
  readonly loopback: boolean;
  readonly alias: string | null;
  /** The kind of virtual interface. Null for a network card. */
  readonly kind: string | null;
  /** The bridge, bond or VRF that the link belongs to. */
  readonly master: string | null;
  /** The interface below, or the other end of a pair. Null if in another network namespace. */
  readonly lower: string | null;
  /** True for an Ethernet device of a program, such as a virtual machine monitor. */
  readonly isTap: boolean;
  /** True if packets may have incomplete checksums: of virtual machines, not of VPNs. */
  readonly hasVirtioHeader: boolean;
  readonly addresses: readonly ShownAddress[];
}

export interface ShownAddress extends InterfaceAddress {
  /** The on-link range. On a point-to-point link, the range of the other end. */
  readonly subnet: Prefix;
}

export interface ShownRoute {
  readonly prefix: Prefix;
  readonly table: string;
  readonly protocol: string;
  /** The links that it leads into. A multipath route has several. */
  readonly links: readonly string[];
  readonly gateways: readonly Address[];
  readonly metric: number;
  /** The MTU of the route itself. Null if it has none. */
  readonly mtu: number | null;
  /** The type of service to which the route is restricted. */
  readonly tos: string | null;
  /** The source address for packets that have none yet. */
  readonly source: Address | null;
}

/**
 * One process reads everything. The arguments are chosen for these reasons:
 * - Details include aliases.
 * - Numbers are reliable, because a host may rename tables and protocols.
 * - Each family has its own command, because both print their default route as `default`.
 * - The rules of IPv6 are missing, because one batch cannot show the rules of both families.
 */
export const showArgs = ['-json', '-details', '-Numeric', '-batch', '-'];
export const showInput = `address show
route show table all root 0.0.0.0/0
route show table all type unicast root ::/0
rule show
`;

/** Parses {@link showInput}'s output: 4 lines of JSON (ip-address(8), ip-route(8), ip-rule(8)). */
export function parseShown(text: string): ShownByIp {
  return shownReader()(text);
}

/** Parses successive outputs: only the lines that differ from the last one. */
export function shownReader(): (text: string) => ShownByIp {
  const readLinks = memoizeLast((line) =>
    parseList(line)
      .filter((entry) => typeof entry.ifname === 'string')
      .map(readLink),
  );
  const readFour = memoizeLast((line) => readRoutes(line, '0.0.0.0/0'));
  const readSix = memoizeLast((line) => readRoutes(line, '::/0'));
  const readOthers = memoizeLast((line) => {
    const entries = parseList(line);
    return {
      refusing: entries.filter(isRefusing).map(readDestination('0.0.0.0/0')),
      throwRoutes: entries.filter(isOwnThrow).map(readThrow),
    };
  });
  const readRules = memoizeLast((line) => parseList(line).map(readRule));
  return memoizeLast((text) => {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    const [links = '', four = '', six = '', rules = ''] = lines;
    if (lines.length !== 4) throw invalidIpOutput('has not four lines');
    const routes = [...readFour(four), ...readSix(six)];
    return { links: readLinks(links), routes, rules: readRules(rules), ...readOthers(four) };
  });
}

function readRoutes(line: string, whole: string): readonly ShownRoute[] {
  const everything = maskPrefix(whole);
  return parseList(line)
    .filter((entry) => isUnicast(entry) && !isForEchoes(entry))
    .map((entry) => readRoute(entry, everything));
}

function readLink(entry: JsonEntry): ShownLink {
  const flags = asList(entry.flags);
  const info = isEntry(entry.linkinfo) ? entry.linkinfo : {};
  const data = isEntry(info.info_data) ? info.info_data : {};
  return {
    index: numberOf(entry.ifindex, 'ifindex'),
    name: String(entry.ifname),
    mtu: numberOf(entry.mtu, 'mtu'),
    up: flags.includes('UP'),
    carrier: !flags.includes('NO-CARRIER'),
    loopback: flags.includes('LOOPBACK'),
    alias: typeof entry.ifalias === 'string' ? entry.ifalias : null,
    kind: typeof info.info_kind === 'string' ? info.info_kind : null,
    master: typeof entry.master === 'string' ? entry.master : null,
    lower: typeof entry.link === 'string' ? entry.link : null,
    isTap: data.type === 'tap',
    hasVirtioHeader: data.vnet_hdr === true,
    addresses: asList(entry.addr_info).filter(isEntry).flatMap(readLinkAddress),
  };
}

function readLinkAddress({ local, address: other, prefixlen }: JsonEntry): ShownAddress[] {
  const address = readAddress(String(local));
  if (address === null) return [];
  const length = numberOf(prefixlen, 'prefixlen');
  return [{ address, length, subnet: readPrefix(`${readAddress(String(other)) ?? address}/${length}`) }];
}

function isUnicast({ type, dst }: JsonEntry): boolean {
  return (type === undefined || type === '1' || type === 'unicast') && typeof dst === 'string';
}

/** These end the lookup (linux/rtnetlink.h). A `throw` continues with the next rule. */
function isRefusing({ type, table, dst }: JsonEntry): boolean {
  const kinds = ['6', '7', '8', 'blackhole', 'unreachable', 'prohibit'];
  return kinds.includes(String(type)) && tableName(table ?? 'main') === 'main' && typeof dst === 'string';
}

/** RTN_THROW of linux/rtnetlink.h. */
function isOwnThrow({ type, table, protocol, dst }: JsonEntry): boolean {
  const isThrow = type === '9' || type === 'throw';
  return isThrow && `${protocol}` === routeProtocol && isRouteTable(tableName(table)) && typeof dst === 'string';
}

function readThrow({ dst, table }: JsonEntry): ThrowRoute {
  return { prefix: readPrefix(String(dst)), table: tableName(table) };
}

function readDestination(whole: string): (entry: JsonEntry) => Prefix {
  return ({ dst }) => (dst === 'default' ? maskPrefix(whole) : readPrefix(String(dst)));
}

/** Our own routes for a type of service are temporary, and only echoes use them. */
function isForEchoes({ tos, protocol }: JsonEntry): boolean {
  return tos !== undefined && protocol === routeProtocol;
}

function readRoute(entry: JsonEntry, whole: Prefix): ShownRoute {
  const hops = [entry, ...asList(entry.nexthops).filter(isEntry)];
  const [metrics] = asList(entry.metrics).filter(isEntry);
  return {
    prefix: entry.dst === 'default' ? whole : readPrefix(String(entry.dst)),
    table: tableName(entry.table ?? 'main'),
    protocol: protocolName(entry.protocol ?? 'boot'),
    links: hops.flatMap((hop) => (typeof hop.dev === 'string' ? [hop.dev] : [])),
    gateways: hops.flatMap((hop) => readGateway(hop) ?? []),
    metric: typeof entry.metric === 'number' ? entry.metric : 0,
    mtu: typeof metrics?.mtu === 'number' ? metrics.mtu : null,
    tos: typeof entry.tos === 'string' ? entry.tos : null,
    source: typeof entry.prefsrc === 'string' ? readAddress(entry.prefsrc) : null,
  };
}

/** Parses an IPv4 rule of `ip rule show` (print_rule in ip/iprule.c of iproute2). */
function readRule(entry: JsonEntry): Rule {
  const { priority, src, srclen, dst, dstlen, fwmark, fwmask, table, protocol } = entry;
  const { goto, suppress_prefixlen: suppress } = entry;
  return {
    priority: numberOf(priority, 'priority'),
    // `ip` prints a flag as a key with a null value.
    not: 'not' in entry,
    from: readSelector(src, srclen),
    to: readSelector(dst, dstlen),
    fwmark: fwmark === undefined ? null : numberOf(Number(fwmark), 'fwmark'),
    mask: fwmask === undefined ? null : numberOf(Number(fwmask), 'fwmask'),
    table: table === undefined ? null : tableName(table),
    goto: goto === undefined ? null : numberOf(goto, 'goto'),
    suppress: suppress === undefined ? null : numberOf(suppress, 'suppress_prefixlen'),
    protocol: protocolName(protocol ?? '0'),
    more: Object.keys(entry).filter((key) => !knownKeys.has(key)),
  };
}

/** Other keys are in `more`. `unresolved` marks a `goto` without a target, which rules show. */
const knownKeys = new Set(
  'priority not src srclen dst dstlen fwmark fwmask table goto unresolved nop suppress_prefixlen protocol'.split(' '),
);

function readSelector(address: unknown, length: unknown): Prefix | null {
  if (address === undefined || address === 'all') return null;
  return readPrefix(length === undefined ? String(address) : `${address}/${numberOf(length, 'a prefix length')}`);
}

function parseList(line: string): readonly JsonEntry[] {
  try {
    // `ip` prints control characters of an alias unescaped, which JSON forbids.
    const value: unknown = JSON.parse(line.replace(/\p{Cc}/gu, ' '));
    if (Array.isArray(value)) return value.filter(isEntry);
  } catch {}
  throw invalidIpOutput('is not a list in JSON');
}
