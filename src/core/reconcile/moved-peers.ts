import type { PublicKey } from '../crypto/keys.ts';
import type { NetworkMap } from '../map/model.ts';
import { addressesOf, type Resolved } from '../names/resolved-names.ts';
import { type Endpoint, isLiteral, type SocketEndpoint, sameEndpoint } from '../net/endpoint.ts';
import type { TunnelConfig } from '../wg-quick/tunnel-config.ts';

const none: ReadonlySet<PublicKey> = new Set();

/**
 * The peers to which the network gives another endpoint than the one that was applied last, which is in the wg-quick file. What was
 * learned of where they are is older. A name of which only the addresses changed is no other endpoint: a resolver may
 * be wrong, as that of a captive portal is.
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

/** True when the endpoint is a name that led there before, or still does. */
function isNameOf(endpoint: Endpoint | null, before: SocketEndpoint | null, resolved: Resolved): boolean {
  if (endpoint === null || before === null || isLiteral(endpoint) || endpoint.port !== before.port) return false;
  return addressesOf(endpoint.host, resolved).includes(before.host);
}
