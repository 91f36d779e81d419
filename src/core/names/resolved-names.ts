import { type Address, covers, type Prefix } from '../net/cidr.ts';

/** The last known addresses of names, of each the one in use first. */
export type Resolved = Readonly<Record<string, readonly Address[]>>;

/** The addresses of a name, the one in use first; none of a name that never resolved. A name such as `constructor` is one like others. */
export function addressesOf(name: string, resolved: Resolved): readonly Address[] {
  return Object.hasOwn(resolved, name) ? (resolved[name] ?? []) : [];
}

/** A name that gives other addresses each time, as those of large services do, must not grow without end. */
const most = 16;

/**
 * The addresses of a name after a resolver's answer: the one in use stays in use while it is among them, those of before are
 * remembered behind them, and no answer changes nothing. Returns `known` itself where nothing is new.
 *
 * @param isSorted the answer's order counts, and the one in use stays only where it comes first: this host moved
 */
export function mergeAddresses(
  known: readonly Address[],
  answer: readonly Address[],
  isSorted = false,
): readonly Address[] {
  const [inUse] = known;
  const stays = inUse !== undefined && answer.includes(inUse) && (!isSorted || answer[0] === inUse);
  if (answer.length === 0 || (stays && answer.every((address) => known.includes(address)))) return known;
  return [...new Set([...(stays ? [inUse] : []), ...answer, ...known])].slice(0, most);
}

/**
 * The addresses of a name without those that its resolver no longer gives, but for those to keep. One wrong answer must not hold for
 * ever, and neither may it take away what is in use. No answer changes nothing.
 */
export function withoutExpired(
  known: readonly Address[],
  answer: readonly Address[],
  keep: readonly Address[],
): readonly Address[] {
  if (answer.length === 0) return known;
  const left = known.filter((address) => answer.includes(address) || keep.includes(address));
  return left.length === known.length ? known : left;
}

/**
 * A resolver's answer without the addresses that the tunnel carries itself, where another one is known. An endpoint inside a route costs
 * the route, and the word of a resolver is not enough for that: packets would leave the tunnel in the clear.
 *
 * @param carried the routes that lead into the tunnel
 */
export function withoutCarried(
  known: readonly Address[],
  answer: readonly Address[],
  carried: readonly Prefix[],
): readonly Address[] {
  const isCarried = (address: Address) => carried.some((prefix) => covers(prefix, address));
  return known.every(isCarried) ? answer : answer.filter((address) => !isCarried(address));
}

/** True when both say the same of the same names. */
export function sameResolved(one: Resolved, other: Resolved): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name]?.join() === other[name]?.join());
}
