import { isSameProxy, proxyOf } from '../../core/net/proxy.ts';
import { type HttpProxy, isCheckedByListener, type ServiceAddress } from '../../core/net/service-address.ts';
import { socketPathOf } from '../../core/net/socket-path.ts';

/** Where the connections of a client lead. */
export interface ConnectionTarget {
  readonly origin: string;
  readonly proxy: HttpProxy | null;
  /** The Unix socket to connect to, whatever the origin is; null for TCP. */
  readonly socketPath: string | null;
  /** Whose program may answer; null where that is not checked. */
  readonly check: ExpectedUser | null;
  /** The only CAs whose certificates the origin may present, each in PEM; null for the default ones. */
  readonly authorities: readonly string[] | null;
}

/** The user whose program answered before; null where none is remembered. */
export interface ExpectedUser {
  readonly expected: number | null;
}

/** @param base the URL below which the requests are */
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
