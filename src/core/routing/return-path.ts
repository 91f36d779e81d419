import type { KernelRoute } from '../host-state/kernel-route.ts';
import type { Address } from '../net/cidr.ts';

/** The route that the kernel takes for replies from one of the host's own addresses. */
export interface ReturnPath {
  readonly from: Address;
  readonly route: KernelRoute;
  /** The route that the kernel would take without the full tunnel. */
  readonly outside: KernelRoute;
}

/**
 * True if the full tunnel takes replies that the host would otherwise send out through another
 * interface.
 */
export function isTakenByTunnel({ route, outside }: ReturnPath, link: string): boolean {
  return route.link === link && !route.local && outside.link !== null && outside.link !== link;
}
