import type { ThrowRoute, Underlay } from '../host-state/actual.ts';
import { type Address, addressOf, covers, familyOf, hostPrefix, lengthOf, type Prefix } from '../net/cidr.ts';

/** An address inside an accepted route that stays outside the tunnel by its own `throw` route. */
export interface KeptOutside {
  readonly address: Address;
  /** What the address is to the host, such as `a resolver`. */
  readonly what: string;
}

/** The kinds of such addresses, as messages print them and as the state file has them. */
export const resolver = 'a resolver';
export const sshClient = 'an SSH client';
/** What the API address of this host is called in messages. */
export const nameService = (isProxied: boolean): string =>
  isProxied ? 'the proxy to the control plane' : 'the control plane';

/** True if a resolver may be unobserved: at boot none is set, and a stub's sockets are brief. */
export function areResolversUnknown({ stubs = [], resolvers }: Pick<Underlay, 'stubs' | 'resolvers'>): boolean {
  return resolvers.length === 0 || stubs.some(({ isStated }) => !isStated);
}

/**
 * Returns the servers that stubs query, as far as sockets show, which exist only during a query. At
 * boot the host has no resolver. Until resolvers are known, those kept outside before count.
 */
export function findStubResolvers(
  underlay: Pick<Underlay, 'stubs' | 'resolvers'>,
  remembered: readonly KeptOutside[],
): readonly Address[] {
  const observed = underlay.stubs?.flatMap(({ observed }) => observed) ?? [];
  const known = areResolversUnknown(underlay) ? remembered.filter(({ what }) => what === resolver) : [];
  return [...new Set([...observed, ...known.map(({ address }) => address)])];
}

/** True for an address in a narrower subnet than `prefix`: the kernel prefers it in any table. */
export function staysLocal(prefix: Prefix, address: Address, connected: Underlay['connected']): boolean {
  return connected.some((subnet) => lengthOf(subnet.prefix) > lengthOf(prefix) && covers(subnet.prefix, address));
}

/** Returns, for example, `192.168.50.53 stays outside: a resolver`. */
export function describeOutside({ address, what }: KeptOutside): string {
  return `${address} stays outside: ${what}`;
}

/** Returns the addresses of `outside` that any of the routes would lead into the tunnel. */
export function outsideOf(routes: readonly Prefix[], outside: readonly KeptOutside[]): readonly KeptOutside[] {
  return outside.filter(({ address }) => routes.some((prefix) => isPartOf(address, prefix)));
}

/** True if the prefix covers the address and is wider than it. */
function isPartOf(address: Address, prefix: Prefix): boolean {
  return familyOf(address) === 4 && lengthOf(prefix) < 32 && covers(prefix, address);
}

/** Returns the addresses that `throw` routes keep outside a table. */
export function thrownFrom(table: string | null, throwRoutes: readonly ThrowRoute[] = []): readonly Address[] {
  return throwRoutes
    .filter((route) => route.table === table && route.prefix === hostPrefix(addressOf(route.prefix)))
    .map(({ prefix }) => addressOf(prefix));
}
