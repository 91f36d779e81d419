import { type Address, lengthOf } from './cidr.ts';
import { type Endpoint, isLiteral, type SocketEndpoint, unusableAddress } from './endpoint.ts';
import type { NetworkMap } from './model.ts';
import { perObject } from './per-object.ts';
import type { Resolved } from './resolved.ts';

/** A network, and the addresses of the names in it. */
interface Place {
  readonly map: NetworkMap;
  readonly resolved: Resolved;
}

/**
 * Where a peer is reached outside the tunnel; null where that is not known, or no peer can listen there: an address of a peer of the
 * same network is in the tunnel, whose packets would go into it again and again.
 */
export function reachOutside(endpoint: Endpoint | null, { map, resolved }: Place): SocketEndpoint | null {
  const located = locate(endpoint, resolved);
  if (located === null || unusableAddress(located.host) !== null) return null;
  // Where the range is not known, so is not whether the address is in the tunnel.
  return lengthOf(map.cidr) < 32 && addressesOf(map).has(located.host) ? null : located;
}

/** An endpoint at which a packet can be sent without asking a resolver; null when its name never resolved. */
export function locate(endpoint: Endpoint | null, resolved: Resolved): SocketEndpoint | null {
  if (endpoint === null || isLiteral(endpoint)) return endpoint;
  const [host] = resolved[endpoint.host] ?? [];
  return host === undefined ? null : { host, port: endpoint.port };
}

const addressesOf = perObject(
  ({ peers }: NetworkMap): ReadonlySet<Address> => new Set(peers.map((peer) => peer.address)),
);
