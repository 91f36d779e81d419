import type { NetworkMap, Peer, PeerId } from '../map/model.ts';
import { findOwnConnector } from '../routing/via-connectors.ts';

/** Names of peers in one sentence. */
const mostNames = 3;

/**
 * A sentence for each connector that does not answer and that other peers dial alone: WireGuard by itself cannot move them to another.
 *
 * @param silent the connectors that do not answer this host
 */
export function describeDialled(map: Pick<NetworkMap, 'peers'>, silent: ReadonlySet<PeerId>): string[] {
  const dialling = Map.groupBy(
    map.peers.filter((peer) => peer.via),
    (peer) => findOwnConnector(peer, map),
  );
  return [...dialling].flatMap(([connector, peers]) =>
    connector !== null && silent.has(connector.id)
      ? `${connector.name} does not answer here, and is the only connector of ${listNames(peers)}; a new profile through another one moves them`
      : [],
  );
}

function listNames(peers: readonly Peer[]): string {
  const names = peers.slice(0, mostNames).map(({ name }) => name);
  const rest = peers.length - names.length;
  return rest > 0 ? `${names.join(', ')} and ${rest} more` : names.join(', ');
}
