import type { Address, Prefix } from '../net/cidr.ts';

/** What the kernel does with a packet of this host, by its present rules and tables. */
export type KernelRoute = TakenRoute | RefusedRoute;

/** The packet leaves by a link, or stays on the host. */
export interface TakenRoute {
  readonly link: string;
  /** True for an address of this host. The packet leaves by no link, even if one is named. */
  readonly local: boolean;
  /** The packet's source, unless the program sets it; null if the kernel does not report it. */
  readonly source: Address | null;
  readonly gateway: Address | null;
  /** `main` or a number. */
  readonly table: string;
  /** The route that matched, and its protocol; null if the system does not report it. */
  readonly prefix: Prefix | null;
  readonly protocol: string;
}

/** The packet is refused before it leaves. */
export interface RefusedRoute {
  readonly link: null;
  /** `none`: nothing matches. The others are kinds of routes and policy rules (ip-route(8)). */
  readonly why: 'none' | 'unreachable' | 'prohibit' | 'blackhole';
}

/** The route that the kernel takes for replies from one of the host's own addresses. */
export interface ReturnPath {
  readonly from: Address;
  readonly route: KernelRoute;
  /** The route that the kernel would take without the full tunnel. */
  readonly outside: KernelRoute;
}

/** True if the full tunnel takes replies that would otherwise leave by another interface. */
export function isTakenByTunnel({ route, outside }: ReturnPath, link: string): boolean {
  return route.link === link && !route.local && outside.link !== null && outside.link !== link;
}
