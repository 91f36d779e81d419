/**
 * Classes of addresses that are allowed the same. A map leads from an address to the chain of its
 * class. Peers are many and lists of ports are few, so that all pairs of them would be many more
 * elements.
 *
 * @module
 */
import { digestOf } from '../crypto/keys.ts';
import { addressIn, type Family } from '../net/cidr.ts';
import type { NumberRange } from '../net/number-ranges.ts';
import type { Access, Admitted } from '../rules/resolve.ts';
import { subtractPorts } from '../rules/selector.ts';

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

/** Addresses that are allowed the same; null for all addresses. */
type Groups = ReadonlyMap<Admitted, readonly (NumberRange | null)[]>;

/** Groups the addresses of the other side. Some have what is not allowed to all. */
export function groupAccess({ peers, ranges, others }: Access): Groups {
  const special = Map.groupBy(others.everything ? [] : [...peers, ...ranges], ({ admitted }) => admitted);
  const groups = [...special].map(([admitted, members]) => {
    return [without(admitted, others), members.map(({ range }) => range)] as const;
  });
  return new Map<Admitted, readonly (NumberRange | null)[]>([...groups, [others, [null]]]);
}

/** Single addresses, ranges of addresses, and all addresses. */
const keys = {
  peers: (family: Family) => `type ipv${family}_addr : verdict;`,
  ranges: (family: Family) => `type ipv${family}_addr : verdict; flags interval;`,
  all: () => 'type nf_proto : verdict;',
};
type Key = keyof typeof keys;

/** Writes the maps `NAME_peers`, `NAME_ranges` and `NAME_all`, except those without elements. */
export function writeClasses(
  name: string,
  prefix: string,
  groups: Groups,
  family: Family,
  write: (admitted: Admitted) => readonly string[],
): { readonly sets: readonly AccessSet[]; readonly classes: readonly AccessChain[] } {
  const elements: Readonly<Record<Key, string[]>> = { peers: [], ranges: [], all: [] };
  const classes = [...groups].flatMap(([admitted, members]): AccessChain[] => {
    const texts = admitted.everything ? [] : write(admitted);
    if (texts.length === 0 && !admitted.everything) return [];
    const chain = `${prefix}_${digestOf(texts.join('\n'), 8)}`;
    const verdict = admitted.everything ? 'accept' : `jump ${chain}`;
    for (const member of members) {
      const key: Key = member === null ? 'all' : member.first === member.last ? 'peers' : 'ranges';
      elements[key].push(`${member === null ? `ipv${family}` : writeNumbers(member, family)} : ${verdict}`);
    }
    return admitted.everything ? [] : [{ name: chain, texts }];
  });
  const sets = (Object.keys(keys) as Key[]).map((key) => {
    return { name: `${name}_${key}`, type: keys[key](family), elements: elements[key] };
  });
  return { classes, sets: sets.filter((set) => set.elements.length > 0) };
}

/** Writes the rules that search these maps for an address, on packets that match. */
export function lookUpClasses(maps: readonly AccessSet[], match: string, address: string): string[] {
  return maps.map(({ name }) => `${match}${name.endsWith('_all') ? 'meta nfproto' : address} vmap @${name}`);
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
