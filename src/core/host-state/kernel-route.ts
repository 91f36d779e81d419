import type { Address, Prefix } from '../net/cidr.ts';

/** What the kernel does with a packet of this host, by the rules and tables of this moment. */
export type KernelRoute = TakenRoute | RefusedRoute;

/** The packet leaves by a link, or stays here. */
export interface TakenRoute {
  readonly link: string;
  /** True for an address of this host: the packet leaves by no link, though one may be named. */
  readonly local: boolean;
  /** What the packet bears as its source where the program sets none; null where the kernel does not say. */
  readonly source: Address | null;
  readonly gateway: Address | null;
  /** `main` or a number. */
  readonly table: string;
  /** The route that matched, and who made it; null where the system does not tell. */
  readonly prefix: Prefix | null;
  readonly protocol: string;
}

/** The packet is refused before it leaves. */
export interface RefusedRoute {
  readonly link: null;
  /** `none`: nothing matches. The others are kinds of routes and of policy rules (ip-route(8)). */
  readonly why: 'none' | 'unreachable' | 'prohibit' | 'blackhole';
}
