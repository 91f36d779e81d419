import type { NetworkMap, PeerId } from '../map/model.ts';
import { findOwnConnector } from '../routing/topology/via-connectors.ts';

/**
 * Finds the silent connectors that other peers dial alone. WireGuard cannot move these peers to
 * another connector.
 *
 * @param silent the connectors that do not answer this host
 */
export function findSoleConnectors(
  map: Pick<NetworkMap, 'peers'>,
  silent: ReadonlySet<PeerId>,
): { readonly connector: string; readonly peers: readonly string[] }[] {
  const dialling = Map.groupBy(
    map.peers.filter((peer) => peer.via),
    (peer) => findOwnConnector(peer, map),
  );
  return [...dialling].flatMap(([connector, peers]) =>
    connector !== null && silent.has(connector.id)
      ? { connector: connector.name, peers: peers.map(({ name }) => name) }
      : [],
  );
}
