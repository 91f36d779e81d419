import { InvalidValue } from '../../core/errors/index.ts';
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

/**
 * Resolves a path below a service's base address, and returns it with its query. Throws
 * InvalidValue for another origin, or a path that leaves the base by dots.
 */
export function resolvePath(base: URL, given: string): string {
  const wrong = (rule: string) =>
    new InvalidValue('PATH', given.replace(/[?#].*$/s, ''), rule, 'write it like /api/networks');
  if (/^[a-z][a-z0-9+.-]*:/i.test(given) || /^[/\\]{2}/.test(given)) {
    throw wrong('is a full URL; requests go only to the service that you are logged in to');
  }
  if (/[\s\p{Cc}\\#]/u.test(given)) throw wrong('has a character that is not valid in a path');
  const basePath = base.pathname.replace(/\/$/, '');
  const url = URL.parse(`${basePath}/${given.replace(/^\//, '')}`, base.href);
  if (url?.origin !== base.origin) throw wrong('is not a path');
  if (!url.pathname.startsWith(`${basePath}/`)) throw wrong('leads out of the base address of the service');
  return `${url.pathname.slice(basePath.length)}${url.search}`;
}
