import type { PublicKey } from '../crypto/keys.ts';
import type { NetworkMap } from '../map/model.ts';
import { addressesOf, type Resolved } from '../names/resolved-names.ts';
import { type Endpoint, isLiteral, type SocketEndpoint, sameEndpoint } from '../net/endpoint.ts';
import type { TunnelConfig } from '../wg-quick/parse.ts';

const none: ReadonlySet<PublicKey> = new Set();

/**
 * Returns the peers whose endpoint in the map differs from the one in the wg-quick file that was
 * last applied: their learned endpoint is then out of date. A name whose addresses changed is not
 * another endpoint: a resolver may be wrong, such as that of a captive portal.
 */
export function findMovedPeers(
  config: TunnelConfig,
  applied: TunnelConfig | null,
  { map, resolved }: { readonly map: NetworkMap; readonly resolved: Resolved },
): ReadonlySet<PublicKey> {
  if (applied === null || applied === config) return none;
  const before = new Map(applied.peers.map((peer) => [peer.publicKey, peer.endpoint]));
  const differing = config.peers.filter(({ publicKey, endpoint }) => {
    const old = before.get(publicKey);
    return endpoint !== null && old !== undefined && !sameEndpoint(endpoint, old);
  });
  if (differing.length === 0) return none;
  const given = new Map(map.peers.map((peer) => [peer.publicKey, peer.endpoint]));
  const moved = differing.filter(
    ({ publicKey }) => !isNameOf(given.get(publicKey) ?? null, before.get(publicKey) ?? null, resolved),
  );
  return new Set(moved.map((peer) => peer.publicKey));
}

/** True if the endpoint is a name that resolved to that address before, or still does. */
function isNameOf(endpoint: Endpoint | null, before: SocketEndpoint | null, resolved: Resolved): boolean {
  if (endpoint === null || before === null || isLiteral(endpoint) || endpoint.port !== before.port) return false;
  return addressesOf(endpoint.host, resolved).includes(before.host);
}
