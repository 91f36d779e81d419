import type { KernelRoute } from '../host-state/kernel-route.ts';
import type { Address } from '../net/cidr.ts';

/** Where the kernel sends the answers of this host that bear one of its own addresses. */
export interface ReturnPath {
  readonly from: Address;
  readonly route: KernelRoute;
  /** Where it would send them without the full tunnel. */
  readonly outside: KernelRoute;
}

/** True where the full tunnel takes answers that the host itself would send out elsewhere. */
export function isTakenByTunnel({ route, outside }: ReturnPath, link: string): boolean {
  return route.link === link && !route.local && outside.link !== null && outside.link !== link;
}
