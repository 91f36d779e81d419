/**
 * Parts of packet rules in nft syntax (nft(8)).
 *
 * @module
 */
import { InvalidValue } from '../errors/index.ts';
import { type Address, covers, familyOf, type Prefix } from '../net/cidr.ts';
import { isPlainLinkName } from '../net/link-name.ts';

/** @throws InvalidValue without a name, and for a name that nft could read as something else */
export function writeLinks(names: readonly string[]): string {
  const [first, ...rest] = names;
  const wrong = names.find((name) => !isPlainLinkName(name));
  if (first === undefined) throw new InvalidValue('packet rule', 'interface', 'names no interface');
  if (wrong !== undefined) throw new InvalidValue('packet rule', wrong, 'is no name of an interface');
  return rest.length === 0 ? `"${first}"` : `{ ${names.map((name) => `"${name}"`).join(', ')} }`;
}

/** The sources and the destinations of packets. The prefixes of each list do not overlap. */
export interface RuleEnds {
  readonly from: readonly Prefix[];
  readonly to: readonly Prefix[];
}

/** @throws InvalidValue if the ends are not of one family */
export function writeEnds({ from, to }: RuleEnds): string {
  const mixed = new Set([...from, ...to].map(familyOf)).size > 1;
  if (mixed) throw new InvalidValue('packet rule', `${from} to ${to}`, 'mixes IPv4 and IPv6');
  return `${writeOne('saddr', from)} ${writeOne('daddr', to)}`;
}

/** @throws InvalidValue without a prefix */
export function writeOne(field: 'saddr' | 'daddr', prefixes: readonly Prefix[], not: '!= ' | '' = ''): string {
  const [first, ...rest] = prefixes;
  if (first === undefined) throw new InvalidValue('packet rule', field, 'names no address range');
  return `${protocolOf(first)} ${field} ${not}${rest.length === 0 ? first : `{ ${prefixes.join(', ')} }`}`;
}

export function protocolOf(value: Address | Prefix): 'ip' | 'ip6' {
  return familyOf(value) === 4 ? 'ip' : 'ip6';
}

/** Removes prefixes that another one covers: the elements of a set must not overlap. */
export function widest(prefixes: readonly Prefix[]): Prefix[] {
  const distinct = [...new Set(prefixes)];
  return distinct.filter((inner) => !distinct.some((outer) => outer !== inner && covers(outer, inner)));
}
