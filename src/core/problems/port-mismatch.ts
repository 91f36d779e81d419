import type { Address } from '../net/cidr.ts';
import { type Endpoint, isLiteral } from '../net/endpoint.ts';

/** Peers dial this host at a port on which its tunnel does not listen. */
export interface PortMismatch {
  readonly endpoint: Endpoint;
  /** Where the tunnel listens. */
  readonly bound: number;
}

/**
 * Compares the endpoint that the network lists of this host with the listen port. A router may map
 * another port at an address that is not this host's own, so only its own addresses count.
 */
export function findPortMismatch(
  endpoint: Endpoint | null,
  bound: number | null,
  own: readonly Address[],
): PortMismatch | null {
  if (endpoint === null || bound === null || !isLiteral(endpoint)) return null;
  return own.includes(endpoint.host) && endpoint.port !== bound ? { endpoint, bound } : null;
}
