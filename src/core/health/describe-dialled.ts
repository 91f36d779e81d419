import type { NetworkMap, PeerId } from '../map/model.ts';
import { findOwnConnector } from '../routing/via-connectors.ts';
import { listNames } from '../util/list-names.ts';

/**
 * Returns a sentence for each silent connector that is the only one that some peers dial. WireGuard
 * cannot move such peers to another connector.
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
      ? `${connector.name} does not answer here, and is the only connector of ${listNames(peers.map(({ name }) => name))}; a new profile through another one moves them`
      : [],
  );
}
