import type { ThrowRoute, Underlay } from '../host-state/actual.ts';
import { type Address, addressOf, covers, familyOf, hostPrefix, lengthOf, type Prefix } from '../net/cidr.ts';

/** An address inside an accepted route that stays outside the tunnel by a route of its own. */
export interface KeptOutside {
  readonly address: Address;
  /** What the address is to this host, such as `a resolver`. */
  readonly what: string;
}

/** What such an address is, as people read it and as the state remembers it. */
export const resolver = 'a resolver';
export const sshClient = 'an SSH client';
/** The address by which this host reaches the control plane. */
export const nameService = (isProxied: boolean): string =>
  isProxied ? 'the proxy to the control plane' : 'the control plane';

/** True where the host may have more resolvers than can be seen: none is named during boot, and a stub's sockets last for a query. */
export function areResolversUnknown({ stubs = [], resolvers }: Pick<Underlay, 'stubs' | 'resolvers'>): boolean {
  return resolvers.length === 0 || stubs.some(({ isStated }) => !isStated);
}

/**
 * The servers that the local stubs of this host query, as far as their sockets show them. A socket is there for the time of a query, and
 * during boot a host has no resolver yet: until its resolvers are known, those count that were kept outside.
 */
export function findStubResolvers(
  underlay: Pick<Underlay, 'stubs' | 'resolvers'>,
  remembered: readonly KeptOutside[],
): readonly Address[] {
  const observed = underlay.stubs?.flatMap(({ observed }) => observed) ?? [];
  const known = areResolversUnknown(underlay) ? remembered.filter(({ what }) => what === resolver) : [];
  return [...new Set([...observed, ...known.map(({ address }) => address)])];
}

/** True where a subnet of this host, narrower than `prefix`, has the address: the kernel prefers that, whatever the table. */
export function staysLocal(prefix: Prefix, address: Address, connected: Underlay['connected']): boolean {
  return connected.some((subnet) => lengthOf(subnet.prefix) > lengthOf(prefix) && covers(subnet.prefix, address));
}

/** `192.168.50.53 stays outside: a resolver`. */
export function describeOutside({ address, what }: KeptOutside): string {
  return `${address} stays outside: ${what}`;
}

/** The addresses among those kept outside that one of these routes would lead into the tunnel. */
export function outsideOf(routes: readonly Prefix[], outside: readonly KeptOutside[]): readonly KeptOutside[] {
  return outside.filter(({ address }) => routes.some((prefix) => isPartOf(address, prefix)));
}

/** True where the address is a part of the prefix, and not all of it. */
function isPartOf(address: Address, prefix: Prefix): boolean {
  return familyOf(address) === 4 && lengthOf(prefix) < 32 && covers(prefix, address);
}

/** The addresses that such routes keep outside a table. */
export function thrownFrom(table: string | null, throwRoutes: readonly ThrowRoute[] = []): readonly Address[] {
  return throwRoutes
    .filter((route) => route.table === table && route.prefix === hostPrefix(addressOf(route.prefix)))
    .map(({ prefix }) => addressOf(prefix));
}
