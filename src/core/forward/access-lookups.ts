import { digestOf } from '../crypto/keys.ts';
import type { PortRange } from '../map/access-rules.ts';
import { addressIn, type Family, familyOf, type Prefix } from '../net/cidr.ts';
import { probedPort } from '../rules/evaluate.ts';
import { type Access, type Admitted, isEveryPort, type LocalEnd, type NumberRange } from '../rules/resolve.ts';
import { formatPorts } from '../rules/selector.ts';
import { protocolOf } from './nft-words.ts';

/** A chain without a hook. */
export interface AccessChain {
  readonly name: string;
  readonly texts: readonly string[];
}

/** A map from addresses or ranges to verdicts. */
export interface VerdictMap {
  readonly name: string;
  /** True if its keys may be ranges. */
  readonly isInterval: boolean;
  readonly elements: ReadonlyMap<string, string>;
}

/**
 * The parts of a closed network's packet filter to which the rules in hooks refer. A map leads from
 * an address to a chain, so the number of lookups for a packet does not depend on the number of
 * rules.
 */
export interface AccessFilter {
  /** The type of the maps' keys. */
  readonly keys: 'ipv4_addr' | 'ipv6_addr';
  readonly chains: readonly AccessChain[];
  readonly maps: readonly VerdictMap[];
}

type Lookups = Omit<AccessFilter, 'keys'>;

/**
 * Our bit of the mark of a connection that began while these rules were in place. Other TCP
 * connections began before, or through another connector.
 */
export const begunMark = '0x8000000';

/** Matches TCP packets that do not begin a connection. */
export const goesOn = 'meta l4proto tcp tcp flags & (fin|syn|rst|ack) != syn';

/**
 * A connection toward this host or its LANs has its addresses and ports in the tunnel before other
 * programs redirect it; one from here, after it is masqueraded.
 */
const directions = {
  inward: {
    ...{ prefix: 'in', remote: 'ct original', port: 'ct original proto-dst' },
    ...{ arrives: 'original', leaves: 'reply', arrivingPort: 'dport', leavingPort: 'sport' },
  },
  outward: {
    ...{ prefix: 'out', remote: 'ct reply', port: 'ct reply proto-src' },
    ...{ arrives: 'reply', leaves: 'original', arrivingPort: 'sport', leavingPort: 'dport' },
  },
} as const;

type Direction = keyof typeof directions;
const both = ['inward', 'outward'] as const;

/**
 * Writes the chains that find what is allowed between each end of this host and the other side:
 * `inN` and `outN` for a connection whose direction is known, and `eitherN`.
 */
export function writeLookups(link: string, range: Prefix, ends: readonly LocalEnd[]): Lookups {
  const family = familyOf(range);
  const classes = createClasses(link, family);
  const lookups = ends.map((end, index) => writeEnd(end, index, { link, range }, classes.verdictOf));
  return {
    chains: [...classes.chains(), ...lookups.flatMap(({ chains }) => chains)],
    maps: lookups.flatMap(({ maps }) => maps),
  };
}

type VerdictOf = (direction: Direction, admitted: Admitted) => string | null;

function writeEnd(
  end: LocalEnd,
  index: number,
  tunnel: { link: string; range: Prefix },
  verdictOf: VerdictOf,
): Lookups {
  const { link, range } = tunnel;
  const ip = protocolOf(range);
  const sides = both.map((direction) => {
    const { prefix, remote } = directions[direction];
    const name = `${prefix}${index}`;
    const { maps, search } = writeAccess(name, end[direction], familyOf(range), (each) => verdictOf(direction, each));
    const other = `${remote} ${ip} saddr`;
    const probes = index === 0 ? probesOf(range).map((probe) => `${probe} ${other} ${range} accept`) : [];
    return { maps, search, chain: { name, texts: [...probes, ...search([other])] } };
  });
  const others = [`iifname "${link}" ${ip} saddr`, `oifname "${link}" ${ip} daddr`];
  const texts = sides.flatMap(({ search }) => search(others));
  return {
    chains: [...sides.map(({ chain }) => chain), { name: `either${index}`, texts }],
    maps: sides.flatMap(({ maps }) => maps),
  };
}

/** Peers find out with these who is reachable, so they pass between all peers. */
function probesOf(range: Prefix): string[] {
  const echo = familyOf(range) === 4 ? 'meta l4proto icmp icmp' : 'meta l4proto ipv6-icmp icmpv6';
  return [`${echo} type { echo-request, echo-reply }`, `meta l4proto tcp ct original proto-dst ${probedPort}`];
}

/** The maps of one direction, and the rules that search them by an address. */
function writeAccess(
  name: string,
  { peers, ranges, others }: Access,
  family: Family,
  verdictOf: (admitted: Admitted) => string | null,
) {
  const elementOf = (key: string, admitted: Admitted): [string, string] => [key, verdictOf(admitted) ?? 'goto refused'];
  const maps: VerdictMap[] = [
    {
      name: `${name}_peers`,
      isInterval: false,
      elements: new Map([...peers].map(([address, admitted]) => elementOf(address, admitted))),
    },
    {
      name: `${name}_ranges`,
      isInterval: true,
      elements: new Map(ranges.map((each) => elementOf(writeNumbers(each, family), each.admitted))),
    },
  ].filter(({ elements }) => elements.size > 0);
  const rest = verdictOf(others);
  const search = (addresses: readonly string[]) => [
    ...addresses.flatMap((address) => maps.map((map) => `${address} vmap @${map.name}`)),
    ...(rest === null ? [] : [rest]),
  ];
  return { maps, search };
}

/** The chains that accept what is allowed, one for each distinct set of protocols and ports. */
function createClasses(link: string, family: Family) {
  const written = new Map<string, readonly AccessChain[]>();
  const verdictOf: VerdictOf = (direction, admitted) => {
    if (!admitted.everything && !admitted.icmp && admitted.tcp.length + admitted.udp.length === 0) return null;
    const id = digestOf(JSON.stringify([direction, admitted]), 6);
    const name = `${directions[direction].prefix}_${id}`;
    if (!written.has(name)) written.set(name, writeClass(name, direction, admitted, { link, family }));
    return `jump ${name}`;
  };
  return { verdictOf, chains: () => [{ name: 'refused', texts: [] }, ...[...written.values()].flat()] };
}

function writeClass(
  name: string,
  direction: Direction,
  { everything, tcp, udp, icmp }: Admitted,
  { link, family }: { link: string; family: Family },
): AccessChain[] {
  const { port, arrives, leaves, arrivingPort, leavingPort } = directions[direction];
  const [outOf, into] = [`iifname "${link}"`, `oifname "${link}"`];
  const icmpProtocol = family === 4 ? 'icmp' : 'ipv6-icmp';
  const match = (protocol: 'tcp' | 'udp', ports: readonly PortRange[], field: string) =>
    ports.length === 0
      ? []
      : [`meta l4proto ${protocol}${isEveryPort(ports) ? '' : ` ${field} ${writePorts(ports)}`} accept`];
  const allowed = everything
    ? ['accept']
    : [
        ...match('tcp', tcp, port),
        ...match('udp', udp, port),
        `meta l4proto ${icmpProtocol}${icmp ? '' : ' ct state related'} accept`,
      ];
  const everyTcp = everything ? [{ first: 0, last: 65_535 }] : tcp;
  const ongoing = [
    ...match('tcp', everyTcp, `tcp ${arrivingPort}`).map((text) => `${outOf} ${text}`),
    ...match('tcp', everyTcp, `tcp ${leavingPort}`).map((text) => `${into} ${text}`),
  ];
  return [
    ...(ongoing.length === 0 ? [] : [{ name: `${name}_on`, texts: ongoing }]),
    { name: `${name}_to`, texts: allowed },
    {
      name,
      texts: [
        `${outOf} ct direction ${arrives} goto ${name}_to`,
        `${into} ct direction ${leaves} goto ${name}_to`,
        ...(ongoing.length === 0
          ? []
          : [
              `${goesOn} ct state { invalid, untracked } goto ${name}_on`,
              `${goesOn} ct mark & ${begunMark} == 0x0 goto ${name}_on`,
            ]),
      ],
    },
  ];
}

function writePorts(ports: readonly PortRange[]): string {
  const [first, ...rest] = ports.map(formatPorts);
  return rest.length === 0 && first !== undefined ? first : `{ ${ports.map(formatPorts).join(', ')} }`;
}

/** Writes addresses as nft(8) has them: one, or the first and the last. */
export function writeNumbers({ first, last }: NumberRange, family: Family): string {
  const start = addressIn(family, first);
  return first === last ? start : `${start}-${addressIn(family, last)}`;
}
