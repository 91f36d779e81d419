import type { NetworkMap } from '../map/model.ts';
import { addressesOf, type Resolved } from '../names/resolved-names.ts';
import { type Address, lengthOf } from '../net/cidr.ts';
import { type Endpoint, isLiteral, type SocketEndpoint, unusableAddress } from '../net/endpoint.ts';

/** A network, and the addresses of the names in it. */
interface NamedEndpoints {
  readonly map: NetworkMap;
  readonly resolved: Resolved;
}

/**
 * Locates a peer outside the tunnel; null if its address is unknown, or no peer can listen there.
 * An address of the network is inside: packets to it would enter the tunnel again and again.
 */
export function locateOutside({ map, resolved }: NamedEndpoints): (endpoint: Endpoint | null) => SocketEndpoint | null {
  // If the range is not known, neither is whether the address is in the tunnel.
  const peerAddresses = new Set<Address>(lengthOf(map.cidr) < 32 ? map.peers.map((peer) => peer.address) : []);
  return (endpoint) => {
    const located = locate(endpoint, resolved);
    return located === null || unusableAddress(located.host) !== null || peerAddresses.has(located.host)
      ? null
      : located;
  };
}

/** Returns an endpoint that needs no name resolution; null if the name never resolved. */
export function locate(endpoint: Endpoint | null, resolved: Resolved): SocketEndpoint | null {
  if (endpoint === null || isLiteral(endpoint)) return endpoint;
  const [host] = addressesOf(endpoint.host, resolved);
  return host === undefined ? null : { host, port: endpoint.port };
}
