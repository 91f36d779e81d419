import { addressIn, type Family, familyOf, type Prefix } from '../net/cidr.ts';
import { probedPort } from '../rules/evaluate.ts';
import type { Access, Admitted, DeviceEnd, LocalEnd, NumberRange } from '../rules/resolve.ts';
import { formatPorts, subtractPorts } from '../rules/selector.ts';
import { protocolOf } from './nft-words.ts';

/** A chain without a hook. */
export interface AccessChain {
  readonly name: string;
  readonly texts: readonly string[];
}

/** A named set or, if its elements have verdicts, a map. */
export interface AccessSet {
  readonly name: string;
  /** The type and flags, in nft syntax. Sets of one name with other types replace each other. */
  readonly type: string;
  readonly elements: readonly string[];
}

/**
 * What the rules of a closed network's packet filter refer to. The number of lookups for a packet
 * does not depend on the number of rules, and a change of rules usually changes elements alone.
 */
export interface AccessFilter {
  readonly chains: readonly AccessChain[];
  readonly sets: readonly AccessSet[];
  /** A hash of the elements of all sets. */
  readonly identity: string;
  readonly family: Family;
}

export type Lookups = Omit<AccessFilter, 'identity' | 'family'>;

/**
 * How to find the other side of a connection, and the port at its destination. A connection toward
 * this host or its LANs has them in the tunnel before other programs redirect it; one from here,
 * after it is masqueraded.
 */
const directions = {
  inward: {
    ...{ prefix: 'in', other: 'ct original', port: 'ct original proto-dst' },
    ...{ arriving: 'dport', leaving: 'sport' },
  },
  outward: {
    ...{ prefix: 'out', other: 'ct reply', port: 'ct reply proto-src' },
    ...{ arriving: 'sport', leaving: 'dport' },
  },
} as const;

type Direction = keyof typeof directions;
const both = ['inward', 'outward'] as const;

/**
 * Writes the chains that accept what is allowed between an end of this host and the other side:
 * `inN` and `outN` for a connection in that direction, and `eitherN` for a TCP packet that does not
 * begin a connection, and whose direction is unknown.
 */
export function writeLookups(link: string, range: Prefix, ends: readonly LocalEnd[]): Lookups {
  const lookups = ends.map((end, index) => writeEnd(end, index, link, range));
  return { chains: lookups.flatMap(({ chains }) => chains), sets: lookups.flatMap(({ sets }) => sets) };
}

/**
 * Writes the chains `deviceN` of peers that this host alone reaches: what is allowed toward them.
 * They end with the given refusal.
 */
export function writeDevices(range: Prefix, devices: readonly DeviceEnd[], refusal: readonly string[]): Lookups {
  const ends = devices.map(({ inward }, index) => {
    const name = `device${index}`;
    const { sets, known } = writeSide(name, inward, 'inward', range);
    const allowed = [...exempt(probesOf(range), 'inward', range), ...known, acceptErrors(range)];
    return { sets, chain: { name, texts: [...allowed, ...refusal] } };
  });
  return { chains: ends.map(({ chain }) => chain), sets: ends.flatMap(({ sets }) => sets) };
}

function writeEnd(end: LocalEnd, index: number, link: string, range: Prefix): Lookups {
  const sides = both.map((direction) => {
    const name = `${directions[direction].prefix}${index}`;
    const { sets, known, ongoing } = writeSide(name, end[direction], direction, range);
    const texts = [...(index === 0 ? exempt(probesOf(range), direction, range) : []), ...known];
    return { sets, chain: { name, texts }, ongoing: ongoing(link) };
  });
  const either: AccessChain = { name: `either${index}`, texts: sides.flatMap(({ ongoing }) => ongoing) };
  return { chains: [...sides.map(({ chain }) => chain), either], sets: sides.flatMap(({ sets }) => sets) };
}

/** Accepts packets between peers that match. */
function exempt(matches: readonly string[], direction: Direction, range: Prefix): string[] {
  const remote = `${directions[direction].other} ${protocolOf(range)} saddr`;
  return matches.map((match) => `${match} ${remote} ${range} accept`);
}

/**
 * The sets of one direction, and the rules that search them: `known` for a connection in that
 * direction, `ongoing` for a TCP packet that may belong to one.
 */
function writeSide(name: string, access: Access, direction: Direction, range: Prefix) {
  const { other, port, arriving, leaving } = directions[direction];
  const ip = protocolOf(range);
  const icmp = familyOf(range) === 4 ? 'icmp' : 'ipv6-icmp';
  const sets = writeSets(name, access, familyOf(range));
  const has = (suffix: string) => sets.some((set) => set.name === `${name}_${suffix}`);
  const refuse = (by: string) => (has('refused') ? [`${by} @${name}_refused return`] : []);
  const everything = (by: string) => (has('any') ? [`${by} @${name}_any accept`] : []);
  const ports = (protocol: 'tcp' | 'udp', key: string) =>
    [protocol, `${protocol}_wide`]
      .filter(has)
      .map((suffix) => `meta l4proto ${protocol} ${key} @${name}_${suffix} accept`);
  const remote = `${other} ${ip} saddr`;
  const known = [
    ...refuse(remote),
    ...ports('tcp', `${remote} . ${port}`),
    ...ports('udp', `${remote} . ${port}`),
    ...everything(remote),
    ...(has('icmp') ? [`meta l4proto ${icmp} ${remote} @${name}_icmp accept`] : []),
  ];
  // A server of this side would keep connections to it by a rule for the other direction.
  const clients = (field: string) => (direction === 'outward' ? ` tcp ${field} >= ${firstClientPort}` : '');
  const ongoing = (link: string) => {
    const sides = [
      [`iifname "${link}"${clients('dport')} ${ip} saddr`, arriving],
      [`oifname "${link}"${clients('sport')} ${ip} daddr`, leaving],
    ] as const;
    // Only `outward`, the last side of a chain, refuses peers: nothing follows that could accept.
    return [
      ...sides.flatMap(([remote]) => refuse(remote)),
      ...sides.flatMap(([remote, field]) => [...ports('tcp', `${remote} . tcp ${field}`), ...everything(remote)]),
    ];
  };
  return { sets, known, ongoing };
}

/** Linux, macOS and Windows choose no lower ports for clients by default. */
export const firstClientPort = 32_768;

/** Accepts ICMP errors about connections. */
export function acceptErrors(range: Prefix): string {
  return `meta l4proto ${familyOf(range) === 4 ? 'icmp' : 'ipv6-icmp'} ct state related accept`;
}

/** Peers find out with these who is reachable, so they pass between all peers. */
function probesOf(range: Prefix): string[] {
  const echo = familyOf(range) === 4 ? 'meta l4proto icmp icmp' : 'meta l4proto ipv6-icmp icmpv6';
  // Another program may redirect the port to a service.
  const probe = `meta l4proto tcp ct status & dnat != dnat ct original proto-dst ${probedPort}`;
  return [`${echo} type { echo-request, echo-reply }`, probe];
}

/** Addresses that are allowed the same. */
interface Group {
  readonly range: NumberRange;
  readonly admitted: Admitted;
}

/**
 * The sets of one direction. Their elements must not overlap, so peers and ranges have only what is
 * not allowed to all others.
 */
function writeSets(name: string, access: Access, family: Family): AccessSet[] {
  const { others, refused } = access;
  const last = family === 4 ? 2n ** 32n - 1n : 2n ** 128n - 1n;
  const special: Group[] = [...access.peers, ...access.ranges].map(({ range, admitted }) => ({
    range,
    admitted: others.everything ? nothing : without(admitted, others),
  }));
  const groups: Group[] = [{ range: { first: 0n, last }, admitted: others }, ...special];
  const key = family === 4 ? 'ipv4_addr' : 'ipv6_addr';
  const write = ({ range }: Group) => writeNumbers(range, family);
  const isSingle = ({ first, last }: NumberRange) => first === last;
  const portsOf = (protocol: 'tcp' | 'udp', wide: boolean) =>
    groups.flatMap((group) =>
      group.admitted[protocol]
        .filter((ports) => wide !== (isSingle(group.range) && ports.first === ports.last))
        .map((ports) => `${write(group)} . ${formatPorts(ports)}`),
    );
  const whole = (matches: (admitted: Admitted) => boolean) =>
    groups.filter(({ admitted }) => matches(admitted)).map(write);
  return [
    ...(['tcp', 'udp'] as const).flatMap((protocol) => [
      { name: `${name}_${protocol}`, type: `type ${key} . inet_service;`, elements: portsOf(protocol, false) },
      {
        name: `${name}_${protocol}_wide`,
        type: `type ${key} . inet_service; flags interval;`,
        elements: portsOf(protocol, true),
      },
    ]),
    { name: `${name}_any`, type: `type ${key}; flags interval;`, elements: whole(({ everything }) => everything) },
    { name: `${name}_icmp`, type: `type ${key}; flags interval;`, elements: whole(({ icmp }) => icmp) },
    { name: `${name}_refused`, type: `type ${key};`, elements: refused },
  ].filter(({ elements }) => elements.length > 0);
}

const nothing: Admitted = { everything: false, tcp: [], udp: [], icmp: false };

/** What is allowed beyond what is allowed to all. */
function without(admitted: Admitted, others: Admitted): Admitted {
  if (admitted.everything) return { ...nothing, everything: true };
  return {
    everything: false,
    tcp: subtractPorts(admitted.tcp, others.tcp),
    udp: subtractPorts(admitted.udp, others.udp),
    icmp: admitted.icmp && !others.icmp,
  };
}

/** Writes addresses as nft(8) has them: one, or the first and the last. */
export function writeNumbers({ first, last }: NumberRange, family: Family): string {
  const start = addressIn(family, first);
  return first === last ? start : `${start}-${addressIn(family, last)}`;
}
