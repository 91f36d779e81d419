import { familyOf, type Prefix } from '../../net/cidr.ts';
import type { Access, Admitted } from '../../rules/resolve.ts';
import { formatPorts } from '../../rules/selector.ts';
import { protocolOf } from '../nft-words.ts';
import { type Classes, lookUpClasses, nameMaps, writeClasses } from './classes.ts';

/**
 * How to find the other side of a connection, and the port at its destination. A connection toward
 * this host or its LANs has them in the tunnel before other programs redirect it; one from here,
 * after it is masqueraded.
 */
export const directions = {
  inward: {
    ...{ prefix: 'in', other: 'ct original', port: 'ct original proto-dst' },
    ...{ arriving: 'dport', leaving: 'sport' },
  },
  outward: {
    ...{ prefix: 'out', other: 'ct reply', port: 'ct reply proto-src' },
    ...{ arriving: 'sport', leaving: 'dport' },
  },
} as const;

export type Direction = keyof typeof directions;

/** The tunnel of a closed network. */
export interface Tunnel {
  readonly link: string;
  readonly range: Prefix;
}

/** What an end allows in one direction. The maps have no names yet. */
export interface Side {
  readonly access: Access;
  /** For a packet of a connection that conntrack saw begin. */
  readonly known: Classes;
  /** For another TCP packet, which may belong to a connection in that direction. */
  readonly ongoing: Classes;
}

/** Linux, macOS and Windows choose no lower ports for clients by default. */
export const firstClientPort = 32_768;

export function classifyKnown(access: Access, direction: Direction, range: Prefix): Classes {
  const { prefix, port } = directions[direction];
  const family = familyOf(range);
  const icmp = family === 4 ? 'icmp' : 'ipv6-icmp';
  return writeClasses(prefix, access, family, (admitted) => [
    ...acceptPorts('tcp', port, admitted.tcp),
    ...acceptPorts('udp', port, admitted.udp),
    ...(admitted.icmp ? [`meta l4proto ${icmp} accept`] : []),
  ]);
}

/** The rules for a connection in a direction, and the sets that they search. */
export function writeKnown(name: string, access: Access, known: Classes, direction: Direction, range: Prefix) {
  const type = `type ipv${familyOf(range)}_addr;`;
  const refused = access.refused.length === 0 ? [] : [{ name: refusedBy(name), type, elements: access.refused }];
  const remote = `${directions[direction].other} ${protocolOf(range)} saddr`;
  const texts = [...refuse(name, access, remote), ...lookUpClasses(name, known, '', remote)];
  return { texts, sets: [...nameMaps(name, known), ...refused] };
}

export function classifyOngoing(access: Access, direction: Direction, { link, range }: Tunnel): Classes {
  const { prefix, arriving, leaving } = directions[direction];
  return writeClasses(`${prefix}_ongoing`, access, familyOf(range), ({ tcp }) => [
    ...acceptPorts('tcp', `tcp ${leaving}`, tcp).map((text) => `oifname "${link}" ${text}`),
    ...acceptPorts('tcp', `tcp ${arriving}`, tcp).map((text) => `oifname != "${link}" ${text}`),
  ]);
}

/** The same for a TCP packet that may belong to a connection in that direction. */
export function writeOngoing(
  end: string,
  access: Access,
  ongoing: Classes,
  direction: Direction,
  { link, range }: Tunnel,
) {
  const ip = protocolOf(range);
  const name = `${end}_ongoing`;
  // A server of this side would keep connections to it by a rule for the other direction.
  const clients = (field: string) => (direction === 'outward' ? ` tcp ${field} >= ${firstClientPort}` : '');
  const sides = [
    [`oifname != "${link}"${clients('dport')}`, `${ip} saddr`],
    [`oifname "${link}"${clients('sport')}`, `${ip} daddr`],
  ] as const;
  const texts = [
    // Only `outward` refuses peers, at the end of a chain: nothing follows that could accept.
    ...sides.flatMap(([side, remote]) => refuse(end, access, `${side} ${remote}`)),
    ...sides.flatMap(([side, remote]) => lookUpClasses(name, ongoing, `${side} `, remote)),
  ];
  return { texts, sets: nameMaps(name, ongoing) };
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
