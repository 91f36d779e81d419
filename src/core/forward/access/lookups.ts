import { digestOf } from '../../crypto/keys.ts';
import { type Family, familyOf, type Prefix } from '../../net/cidr.ts';
import { probedPort } from '../../rules/evaluate.ts';
import type { DeviceEnd, LocalEnd } from '../../rules/resolve.ts';
import { protocolOf } from '../nft-words.ts';
import type { AccessChain, AccessSet } from './classes.ts';
import {
  classifyKnown,
  classifyOngoing,
  type Direction,
  directions,
  type Side,
  type Tunnel,
  writeKnown,
  writeOngoing,
} from './sides.ts';

/**
 * What the rules of a closed network's packet filter refer to. The number of lookups for a packet
 * does not depend on the number of rules. A change of rules usually changes only elements of maps
 * of peers. A map of another kind is replaced by one with another name.
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

/** Chains and sets of several ends, and the name of each end. */
interface NamedLookups extends Lookups {
  readonly names: readonly string[];
}

const both = ['inward', 'outward'] as const;

type Sides = Readonly<Record<Direction, Side>>;

/**
 * Writes the chains that accept what is allowed between an end of this host and the other side:
 * `inNAME` and `outNAME` for a connection in that direction, and `eitherNAME` for a TCP packet that
 * does not begin a connection, and whose direction is unknown.
 */
export function writeLookups(tunnel: Tunnel, ends: readonly LocalEnd[]): NamedLookups {
  const all = ends.map((end): readonly [LocalEnd, Sides] => {
    const write = (direction: Direction): Side => ({
      access: end[direction],
      known: classifyKnown(end[direction], direction, tunnel.range),
      ongoing: classifyOngoing(end[direction], direction, tunnel),
    });
    return [end, { inward: write('inward'), outward: write('outward') }];
  });
  const names = nameEnds(all.map(([end, sides]) => ({ ...end, shape: both.map((each) => shapeOf(sides[each])) })));
  const nameOf = (index: number | undefined) => (index === undefined ? undefined : names[index]);
  const written = all.map(([{ wider }, sides], index) => {
    return writeEnd({ name: names[index] ?? '', wider: nameOf(wider), isOwn: index === 0, sides }, tunnel);
  });
  return { ...joinLookups(written), names };
}

/**
 * Writes the chains `deviceNAME` of peers that this host alone reaches. They accept what is allowed
 * toward these peers, and end with the given refusal.
 */
export function writeDevices(range: Prefix, devices: readonly DeviceEnd[], refusal: readonly string[]): NamedLookups {
  const all = devices.map(({ ranges, inward }) => {
    const known = classifyKnown(inward, 'inward', range);
    return { ranges, access: inward, known, shape: shapeOf({ access: inward, known }) };
  });
  const names = nameEnds(all);
  const written = all.map(({ access, known }, index): Lookups => {
    const name = `device${names[index]}`;
    const { texts, sets } = writeKnown(name, access, known, 'inward', range);
    const allowed = [...exempt(probesOf(range), 'inward', range), ...texts, acceptErrors(range)];
    return { sets, classes: known.classes, chains: [{ name, texts: [...allowed, ...refusal] }] };
  });
  return { ...joinLookups(written), names };
}

/** The maps that an end has. The kernel may refuse changes of ranges, so these are part of it. */
function shapeOf({ access, known, ongoing }: Pick<Side, 'access' | 'known'> & Partial<Side>): unknown {
  const maps = [known, ongoing].map((each) =>
    each?.maps.map(({ key, elements }) => (key === 'peers' ? key : elements)),
  );
  return [access.refused.length > 0, ...maps];
}

/**
 * Names each end by its addresses and the form of its maps. So an end of the same name has the same
 * rules before and after a change, and only elements differ: a packet finds either the element from
 * before or the one from after.
 */
function nameEnds(ends: readonly (Pick<LocalEnd, 'ranges' | 'wider'> & { readonly shape: unknown })[]): string[] {
  // Several ends may have no addresses. The names of the ends that lead to them differ.
  const narrower = ends.map((): string[] => []);
  const named = ends.map(({ ranges, wider, shape }, index) => ({ ranges, wider, shape, index })).toReversed();
  const names = named.map(({ ranges, wider, shape, index }) => {
    const addresses = ranges.map(({ first, last }) => `${first}-${last}`);
    const name = digestOf(JSON.stringify([addresses, shape, narrower[index]]), 8);
    if (wider !== undefined) narrower[wider]?.push(name);
    return name;
  });
  return names.toReversed();
}

interface End {
  readonly name: string;
  /** The name of the end of a wider prefix. */
  readonly wider: string | undefined;
  readonly isOwn: boolean;
  readonly sides: Sides;
}

function writeEnd({ name: end, wider, isOwn, sides }: End, tunnel: Tunnel): Lookups {
  const { range } = tunnel;
  const continueIn = (verb: 'goto' | 'jump', prefix: string) =>
    wider === undefined ? [] : [`${verb} ${prefix}${wider}`];
  const written = both.map((direction) => {
    const { prefix } = directions[direction];
    const { access, known, ongoing } = sides[direction];
    const name = `${prefix}${end}`;
    const begun = writeKnown(name, access, known, direction, range);
    const other = writeOngoing(name, access, ongoing, direction, tunnel);
    const exempted = isOwn ? exempt(probesOf(range), direction, range) : [];
    const texts = [...exempted, ...begun.texts, ...continueIn('goto', prefix)];
    return {
      chains: [{ name, texts }],
      classes: [...known.classes, ...ongoing.classes],
      sets: [...begun.sets, ...other.sets],
      ongoing: other.texts,
    };
  });
  const [inward = [], outward = []] = written.map(({ ongoing }) => ongoing);
  const either: AccessChain = {
    name: `either${end}`,
    texts: [...inward, ...continueIn('jump', 'either'), ...outward],
  };
  return joinLookups([...written, { chains: [either], classes: [], sets: [] }]);
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
