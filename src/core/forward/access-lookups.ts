import { type Family, familyOf, type Prefix } from '../net/cidr.ts';
import { probedPort } from '../rules/evaluate.ts';
import type { Access, Admitted, DeviceEnd, LocalEnd } from '../rules/resolve.ts';
import { formatPorts } from '../rules/selector.ts';
import { type AccessChain, type AccessSet, groupAccess, lookUpClasses, writeClasses } from './access-classes.ts';
import { protocolOf } from './nft-words.ts';

/**
 * What the rules of a closed network's packet filter refer to. The number of lookups for a packet
 * does not depend on the number of rules, and a change of rules usually changes elements alone.
 */
export interface AccessFilter {
  readonly chains: readonly AccessChain[];
  /** Chains that only elements of maps refer to. Each is named by a hash of its rules. */
  readonly classes: readonly AccessChain[];
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

/** The tunnel of a closed network. */
interface Tunnel {
  readonly link: string;
  readonly range: Prefix;
}

/**
 * Writes the chains that accept what is allowed between an end of this host and the other side:
 * `inN` and `outN` for a connection in that direction, and `eitherN` for a TCP packet that does not
 * begin a connection, and whose direction is unknown.
 */
export function writeLookups(tunnel: Tunnel, ends: readonly LocalEnd[]): Lookups {
  return joinLookups(ends.map((end, index) => writeEnd(end, index, tunnel)));
}

/**
 * Writes the chains `deviceN` of peers that this host alone reaches: what is allowed toward them.
 * They end with the given refusal.
 */
export function writeDevices(range: Prefix, devices: readonly DeviceEnd[], refusal: readonly string[]): Lookups {
  return joinLookups(
    devices.map(({ inward }, index) => {
      const { texts, ...rest } = writeKnown(`device${index}`, inward, 'inward', range);
      const allowed = [...exempt(probesOf(range), 'inward', range), ...texts, acceptErrors(range)];
      return { ...rest, chains: [{ name: `device${index}`, texts: [...allowed, ...refusal] }] };
    }),
  );
}

function writeEnd(end: LocalEnd, index: number, tunnel: Tunnel): Lookups {
  const { range } = tunnel;
  const continueIn = (verb: 'goto' | 'jump', prefix: string) =>
    end.wider === undefined ? [] : [`${verb} ${prefix}${end.wider}`];
  const sides = both.map((direction) => {
    const { prefix } = directions[direction];
    const name = `${prefix}${index}`;
    const known = writeKnown(name, end[direction], direction, range);
    const ongoing = writeOngoing(name, end[direction], direction, tunnel);
    const exempted = index === 0 ? exempt(probesOf(range), direction, range) : [];
    const texts = [...exempted, ...known.texts, ...continueIn('goto', prefix)];
    return {
      ...joinLookups([
        { ...known, chains: [{ name, texts }] },
        { ...ongoing, chains: [] },
      ]),
      ongoing,
    };
  });
  const [inward = [], outward = []] = sides.map(({ ongoing }) => ongoing.texts);
  const either: AccessChain = {
    name: `either${index}`,
    texts: [...inward, ...continueIn('jump', 'either'), ...outward],
  };
  return joinLookups([...sides, { chains: [either], classes: [], sets: [] }]);
}

/** A class may be that of several ends. */
export function joinLookups(all: readonly Lookups[]): Lookups {
  const classes = new Map(all.flatMap((each) => each.classes.map((chain) => [chain.name, chain] as const)));
  return {
    chains: all.flatMap(({ chains }) => chains),
    classes: [...classes.values()],
    sets: all.flatMap(({ sets }) => sets),
  };
}

/** Accepts packets between peers that match. */
function exempt(matches: readonly string[], direction: Direction, range: Prefix): string[] {
  const remote = `${directions[direction].other} ${protocolOf(range)} saddr`;
  return matches.map((match) => `${match} ${remote} ${range} accept`);
}

/** The rules for a connection in a direction, and the sets that they search. */
function writeKnown(name: string, access: Access, direction: Direction, range: Prefix) {
  const { prefix, other, port } = directions[direction];
  const family = familyOf(range);
  const icmp = family === 4 ? 'icmp' : 'ipv6-icmp';
  const { sets, classes } = writeClasses(name, prefix, groupAccess(access), family, (admitted) => [
    ...acceptPorts('tcp', port, admitted.tcp),
    ...acceptPorts('udp', port, admitted.udp),
    ...(admitted.icmp ? [`meta l4proto ${icmp} accept`] : []),
  ]);
  const refused: AccessSet[] =
    access.refused.length === 0
      ? []
      : [{ name: refusedBy(name), type: `type ipv${family}_addr;`, elements: access.refused }];
  const remote = `${other} ${protocolOf(range)} saddr`;
  const texts = [...refuse(name, access, remote), ...lookUpClasses(sets, '', remote)];
  return { texts, classes, sets: [...sets, ...refused] };
}

/** The same for a TCP packet that may belong to a connection in that direction. */
function writeOngoing(name: string, access: Access, direction: Direction, { link, range }: Tunnel) {
  const { prefix, arriving, leaving } = directions[direction];
  const ip = protocolOf(range);
  const [toTunnel, fromTunnel] = [`oifname "${link}"`, `oifname != "${link}"`];
  const { sets, classes } = writeClasses(
    ...([`${name}_ongoing`, `${prefix}_ongoing`, groupAccess(access), familyOf(range)] as const),
    ({ tcp }) => [
      ...acceptPorts('tcp', `tcp ${leaving}`, tcp).map((text) => `${toTunnel} ${text}`),
      ...acceptPorts('tcp', `tcp ${arriving}`, tcp).map((text) => `${fromTunnel} ${text}`),
    ],
  );
  // A server of this side would keep connections to it by a rule for the other direction.
  const clients = (field: string) => (direction === 'outward' ? ` tcp ${field} >= ${firstClientPort}` : '');
  const sides = [
    [`${fromTunnel}${clients('dport')}`, `${ip} saddr`],
    [`${toTunnel}${clients('sport')}`, `${ip} daddr`],
  ] as const;
  const texts = [
    // Only `outward` refuses peers, at the end of a chain: nothing follows that could accept.
    ...sides.flatMap(([side, remote]) => refuse(name, access, `${side} ${remote}`)),
    ...sides.flatMap(([side, remote]) => lookUpClasses(sets, `${side} `, remote)),
  ];
  return { texts, classes, sets };
}

const refusedBy = (name: string) => `${name}_refused`;

function refuse(name: string, { refused }: Access, remote: string): string[] {
  return refused.length === 0 ? [] : [`${remote} @${refusedBy(name)} return`];
}

function acceptPorts(protocol: 'tcp' | 'udp', field: string, ports: Admitted['tcp']): string[] {
  if (ports.length === 0) return [];
  const isAll = ports.some(({ first, last }) => first === 0 && last === 65_535);
  const match = isAll ? '' : `${field} { ${ports.map(formatPorts).join(', ')} } `;
  return [`meta l4proto ${protocol} ${match}accept`];
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
