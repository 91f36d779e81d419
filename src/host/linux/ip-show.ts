import { type Address, maskPrefix, type Prefix } from '../../core/cidr.ts';
import { InvalidValue } from '../../core/errors.ts';
import type { InterfaceAddress } from '../../core/model.ts';
import { readAddress, readPrefix } from './read-address.ts';

/** What `ip` tells of all links and of the routes of all tables. */
export interface Shown {
  readonly links: readonly ShownLink[];
  readonly routes: readonly ShownRoute[];
}

export interface ShownLink {
  readonly name: string;
  readonly mtu: number;
  readonly up: boolean;
  readonly loopback: boolean;
  readonly alias: string | null;
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
 * named any table or protocol; and a call for each family because both print their default route as `default`.
 */
export const showArgs = ['-json', '-details', '-Numeric', '-batch', '-'];
export const showInput = `address show
route show table all type unicast root 0.0.0.0/0
route show table all type unicast root ::/0
`;

/** Parses what `ip` prints for {@link showInput}: three lines, each a JSON array (ip-address(8), ip-route(8)). */
export function parseShown(text: string): Shown {
  const [links = [], ...families] = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parseList);
  if (families.length !== everything.length) throw notShown('has not three lines');
  return {
    links: links.filter((entry) => typeof entry.ifname === 'string').map(readLink),
    routes: families.flatMap((entries, index) =>
      entries.filter(isUnicast).map((entry) => readRoute(entry, everything[index] as Prefix)),
    ),
  };
}

/** What `default` stands for, in the order of the calls. */
const everything = [maskPrefix('0.0.0.0/0'), maskPrefix('::/0')];

/** Protocols that the kernel's rtnetlink.h defines, by the names that iproute2 takes for them. */
const protocols: Readonly<Record<string, string>> = {
  1: 'redirect',
  2: 'kernel',
  3: 'boot',
  4: 'static',
  9: 'ra',
  16: 'dhcp',
};

/** The main table's number (RT_TABLE_MAIN); `ip` leaves it out, or not, by version. */
const mainTable = '254';

type Entry = Readonly<Record<string, unknown>>;

function readLink(entry: Entry): ShownLink {
  const flags = listOf(entry.flags);
  return {
    name: String(entry.ifname),
    mtu: numberOf(entry.mtu, 'mtu'),
    up: flags.includes('UP'),
    loopback: flags.includes('LOOPBACK'),
    alias: typeof entry.ifalias === 'string' ? entry.ifalias : null,
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

function readRoute(entry: Entry, whole: Prefix): ShownRoute {
  const hops = [entry, ...listOf(entry.nexthops).filter(isEntry)];
  const [metrics] = listOf(entry.metrics).filter(isEntry);
  const table = String(entry.table ?? 'main');
  const protocol = String(entry.protocol ?? 'boot');
  return {
    prefix: entry.dst === 'default' ? whole : readPrefix(String(entry.dst)),
    table: table === mainTable ? 'main' : table,
    protocol: protocols[protocol] ?? protocol,
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

function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw notShown(`has no number for ${field}`);
  return value;
}

function notShown(rule: string): InvalidValue {
  return new InvalidValue('the output of ip', undefined, rule, 'is this iproute2 4.20 or newer?');
}
