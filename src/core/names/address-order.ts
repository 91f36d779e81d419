import type { Address } from '../net/cidr.ts';
import type { Resolved } from './resolved-names.ts';

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
