/**
 * Classes of addresses that are allowed the same. A map leads from an address to the chain of its
 * class. Peers are many and lists of ports are few, so that all pairs of them would be many more
 * elements.
 *
 * @module
 */
import { digestOf } from '../../crypto/keys.ts';
import { addressIn, type Family } from '../../net/cidr.ts';
import type { NumberRange } from '../../net/number-ranges.ts';
import type { Access, Admitted } from '../../rules/resolve.ts';

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

/** Groups addresses of the other side that are allowed the same; null for all addresses. */
function groupAccess({ peers, ranges, others }: Access): readonly [Admitted, readonly (NumberRange | null)[]][] {
  const special = Map.groupBy(others.everything ? [] : [...peers, ...ranges], ({ admitted }) => admitted);
  const groups = [...special].map(([admitted, members]): [Admitted, NumberRange[]] => {
    return [admitted, members.map(({ range }) => range)];
  });
  return [...groups, [others, [null]]];
}

/** Maps of single addresses, of ranges, and of all addresses. Rules search them in this order. */
const keys = {
  peers: (family: Family) => `type ipv${family}_addr : verdict;`,
  ranges: (family: Family) => `type ipv${family}_addr : verdict; flags interval;`,
  all: () => 'type nf_proto : verdict;',
};
type Key = keyof typeof keys;

/** Maps from addresses to classes. Their names come later. */
export interface Classes {
  /** Only those with elements. */
  readonly maps: readonly (Omit<AccessSet, 'name'> & { readonly key: Key })[];
  readonly classes: readonly AccessChain[];
}

/**
 * Writes maps and classes. An address is in one map with all that it is allowed, so that a packet
 * during a change is judged by the rules before it or after it.
 */
export function writeClasses(
  prefix: string,
  access: Access,
  family: Family,
  write: (admitted: Admitted) => readonly string[],
): Classes {
  const elements: Readonly<Record<Key, string[]>> = { peers: [], ranges: [], all: [] };
  const textsOf = (admitted: Admitted) => (admitted.everything ? ['accept'] : write(admitted));
  const usual = textsOf(access.others).join();
  const classes = groupAccess(access).flatMap(([admitted, members]): AccessChain[] => {
    const texts = textsOf(admitted);
    if (texts.length === 0 || (admitted !== access.others && texts.join() === usual)) return [];
    const chain = `${prefix}_${digestOf(texts.join('\n'), 8)}`;
    const verdict = admitted.everything ? 'accept' : `jump ${chain}`;
    for (const member of members) {
      const key: Key = member === null ? 'all' : member.first === member.last ? 'peers' : 'ranges';
      elements[key].push(`${member === null ? `ipv${family}` : writeNumbers(member, family)} : ${verdict}`);
    }
    return admitted.everything ? [] : [{ name: chain, texts }];
  });
  const maps = (Object.keys(keys) as Key[]).map((key) => ({ key, type: keys[key](family), elements: elements[key] }));
  return { classes, maps: maps.filter((map) => map.elements.length > 0) };
}

/** Names the maps `NAME_peers`, `NAME_ranges` and `NAME_all`. */
export function nameMaps(name: string, { maps }: Classes): AccessSet[] {
  return maps.map(({ key, ...map }) => ({ name: `${name}_${key}`, ...map }));
}

/** Writes the rules that search these maps for an address, on packets that match. */
export function lookUpClasses(name: string, { maps }: Classes, match: string, address: string): string[] {
  return maps.map(({ key }) => `${match}${key === 'all' ? 'meta nfproto' : address} vmap @${name}_${key}`);
}

/** Writes addresses as nft(8) has them: one, or the first and the last. */
export function writeNumbers({ first, last }: NumberRange, family: Family): string {
  const start = addressIn(family, first);
  return first === last ? start : `${start}-${addressIn(family, last)}`;
}
