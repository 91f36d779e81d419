import { compareConnectors } from '../../core/map/connector-rank.ts';
import { hostPrefix } from '../../core/net/cidr.ts';
import { isLiteral, parseEndpoint } from '../../core/net/endpoint.ts';
import { isPrivate } from '../../core/routing/public-prefixes.ts';
import { findObstacle } from '../service/choose-relay.ts';
import { findRelays } from '../store/peers/peer-lists.ts';
import type { StoredPeer } from '../store/peers/peers.ts';
import type { Db } from '../store/tables.ts';

/** The first observes the endpoint. A second shows whether the NAT has a port per destination. */
const mostObservers = 3;

/**
 * Returns the connectors that observe the endpoints of hosts after NAT, the relay first: those in
 * service with a public endpoint that no event states offline.
 */
export async function listObservers(db: Db, network: number): Promise<readonly number[]> {
  const found = await findRelays(db, network);
  if (found === undefined) return [];
  const { range, relay, connectors } = found;
  return connectors
    .filter((peer) => findObstacle(range, peer) === null && isPublic(peer.endpoint) && peer.announced !== 'offline')
    .toSorted((one, other) => Number(other.id === relay) - Number(one.id === relay) || compareConnectors(one, other))
    .slice(0, mostObservers)
    .map(({ id }) => id);
}

/** Other hosts do not see the endpoints of peers behind NAT. */
export function isObserver({ peer_type, endpoint }: StoredPeer): boolean {
  return peer_type === 'connector' && endpoint !== null;
}

/** Hosts reach a peer with an endpoint directly, and one with a fixed profile never. */
export function isHidden({ endpoint, profile }: StoredPeer): boolean {
  return endpoint === null && profile === null;
}

/** A name is taken for one of a public address: nothing resolves it here. */
function isPublic(text: string | null): boolean {
  if (text === null) return false;
  const endpoint = parseEndpoint(text);
  return !isLiteral(endpoint) || !isPrivate(hostPrefix(endpoint.host));
}
