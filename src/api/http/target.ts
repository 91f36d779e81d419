import { isSameProxy, proxyOf } from '../../core/net/proxy.ts';
import { type HttpProxy, isCheckedByListener, type ServiceAddress } from '../../core/net/service-address.ts';

/** Where the connections of a client lead. */
export interface Target {
  readonly origin: string;
  readonly proxy: HttpProxy | null;
  /** Whose program may answer; absent where that is not checked. */
  readonly check?: {
    /** The user whose program listened there before; null where none is remembered. */
    readonly expected: number | null;
  };
}

/** @param base the parsed address of the service */
export function targetOf(address: ServiceAddress, base: URL): Target {
  const target = { origin: base.origin, proxy: proxyOf(address) };
  return isCheckedByListener(base.href) ? { ...target, check: { expected: address.listener ?? null } } : target;
}

export function isSameTarget(one: Target, other: Target): boolean {
  return (
    one.origin === other.origin && one.check?.expected === other.check?.expected && isSameProxy(one.proxy, other.proxy)
  );
}
