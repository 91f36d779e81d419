import { type Address, covers, type Prefix } from '../net/cidr.ts';

/** The last known addresses per name. The address in use comes first. */
export type Resolved = Readonly<Record<string, readonly Address[]>>;

/** The name's addresses, if it ever resolved. Safe for names such as `constructor`. */
export function addressesOf(name: string, resolved: Resolved): readonly Address[] {
  return Object.hasOwn(resolved, name) ? (resolved[name] ?? []) : [];
}

/** Limits the addresses of a name that resolves differently each time, as large services do. */
const most = 16;

/**
 * Merges the reply of a resolver into the known addresses of a name. The address in use stays first
 * if the reply contains it; with `isSorted`, set after this host moved, only if the reply lists it
 * first. Other known addresses follow those of the reply. Returns `known` itself if nothing
 * changed, as for an empty reply.
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
 * Drops addresses that the resolver no longer returns, except those in `keep`: a wrong reply must
 * not last forever, nor remove the address in use. An empty reply changes nothing.
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
 * Drops from a reply the addresses that lie in a route of the tunnel (`carried`), unless only such
 * addresses are known. The guard refuses a route that contains an endpoint, and its packets then
 * bypass the tunnel: a resolver alone must not cause that.
 */
export function withoutCarried(
  known: readonly Address[],
  answer: readonly Address[],
  carried: readonly Prefix[],
): readonly Address[] {
  const isCarried = (address: Address) => carried.some((prefix) => covers(prefix, address));
  return known.every(isCarried) ? answer : answer.filter((address) => !isCarried(address));
}

/** True if both contain the same names with the same addresses. */
export function sameResolved(one: Resolved, other: Resolved): boolean {
  const names = Object.keys(one);
  const isSame = (name: string) => Object.hasOwn(other, name) && one[name]?.join() === other[name]?.join();
  return names.length === Object.keys(other).length && names.every(isSame);
}

/** Sorts usable addresses first, for names with several. The others are `avoided`. */
export function usableFirst(
  known: Resolved,
  isUsable: (address: Address) => boolean,
): { readonly resolved: Resolved; readonly avoided: ReadonlySet<Address> } {
  const avoided = new Set<Address>();
  const entries = Object.entries(known).map(([name, addresses]): [string, readonly Address[]] => {
    if (addresses.length < 2) return [name, addresses];
    const unusable = addresses.filter((address) => !isUsable(address));
    for (const address of unusable) avoided.add(address);
    return [name, [...addresses.filter((address) => !unusable.includes(address)), ...unusable]];
  });
  return { resolved: Object.fromEntries(entries), avoided };
}

/** Moves an address to the front. Returns the same list if it is first already, or missing. */
export function withFirst(addresses: readonly Address[], first: Address): readonly Address[] {
  if (addresses[0] === first || !addresses.includes(first)) return addresses;
  return [first, ...addresses.filter((address) => address !== first)];
}

/** Moves `next` to the front, and `silent` to the end. */
export function withLast(addresses: readonly Address[], silent: Address, next: Address): readonly Address[] {
  const others = addresses.filter((address) => address !== silent);
  return withFirst([...others, silent], next);
}
