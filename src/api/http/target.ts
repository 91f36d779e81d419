import { isSameProxy, proxyOf } from '../../core/net/proxy.ts';
import { type HttpProxy, isCheckedByListener, type ServiceAddress } from '../../core/net/service-address.ts';
import { socketPathOf } from '../../core/net/socket-path.ts';

/** The destination of a client's connections. */
export interface ConnectionTarget {
  readonly origin: string;
  readonly proxy: HttpProxy | null;
  /** The Unix socket to connect to, independent of the origin; null for TCP. */
  readonly socketPath: string | null;
  /** The user whose program must accept; null if not checked. */
  readonly check: ExpectedUser | null;
  /** The only trusted CAs of the origin, each in PEM; null for the default ones. */
  readonly authorities: readonly string[] | null;
}

/** The user whose program accepted before; null if none is stored. */
export interface ExpectedUser {
  readonly expected: number | null;
}

/** @param base the base URL of requests */
export function targetOf(address: ServiceAddress, base: URL): ConnectionTarget {
  const check = isCheckedByListener(address.url) ? { expected: address.listener ?? null } : null;
  const { authorities = null } = address;
  return { origin: base.origin, proxy: proxyOf(address), socketPath: socketPathOf(address.url), check, authorities };
}

export function isSameTarget(one: ConnectionTarget, other: ConnectionTarget): boolean {
  return (
    one.origin === other.origin &&
    one.socketPath === other.socketPath &&
    one.check?.expected === other.check?.expected &&
    one.authorities?.join() === other.authorities?.join() &&
    isSameProxy(one.proxy, other.proxy)
  );
}
