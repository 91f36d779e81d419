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
 * Locates the peers of a network outside the tunnel; null where the address of an endpoint is not known, or no peer can listen there: an
 * address of a peer of the same network is in the tunnel, and its packets would enter the tunnel again and again.
 */
export function locateOutside({ map, resolved }: NamedEndpoints): (endpoint: Endpoint | null) => SocketEndpoint | null {
  // Where the range is not known, so is not whether the address is in the tunnel.
  const peerAddresses = new Set<Address>(lengthOf(map.cidr) < 32 ? map.peers.map((peer) => peer.address) : []);
  return (endpoint) => {
    const located = locate(endpoint, resolved);
    return located === null || unusableAddress(located.host) !== null || peerAddresses.has(located.host)
      ? null
      : located;
  };
}

/** An endpoint at which a packet can be sent without asking a resolver; null when its name never resolved. */
export function locate(endpoint: Endpoint | null, resolved: Resolved): SocketEndpoint | null {
  if (endpoint === null || isLiteral(endpoint)) return endpoint;
  const [host] = addressesOf(endpoint.host, resolved);
  return host === undefined ? null : { host, port: endpoint.port };
}
