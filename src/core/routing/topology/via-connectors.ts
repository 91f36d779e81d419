import type { NetworkMap, Peer, PeerId } from '../../map/model.ts';

/**
 * True if this host exchanges packets with the peer directly. A peer that dials one connector is
 * direct only there. If its connector is unknown, it may dial any connector with an endpoint.
 */
export function isDirect(peer: Peer, self: Peer, map: NetworkMap): boolean {
  if (!peer.via) return peer.endpoint !== null || self.endpoint !== null;
  const own = findOwnConnector(peer, map);
  return own === null ? self.type === 'connector' && self.endpoint !== null : own.id === self.id;
}

/**
 * True if this host reaches the peer through a relay, and either may try a direct path: neither has
 * an endpoint, and both have each other's key. A service that sends a wg-quick text decides itself.
 */
export function mayHavePath(peer: Peer, self: Peer, map: Pick<NetworkMap, 'id'>): boolean {
  return map.id !== null && peer.id !== self.id && isHidden(peer) && isHidden(self);
}

/** True if the peer has no endpoint, and the keys of all hosts. */
export function isHidden({ endpoint, via, given }: Peer): boolean {
  return endpoint === null && via == null && given === undefined;
}

/** True if the peer dials only this host. If it does not answer here, it answers nowhere. */
export function dialsOnly({ via }: Peer, self: Pick<Peer, 'id'>): boolean {
  return via !== undefined && via.connector === self.id;
}

/** Peers that dial only this host, like devices with a profile, which have no other peer's key. */
export function listDialling({ peers }: Pick<NetworkMap, 'peers'>, self: Pick<Peer, 'id'>): Peer[] {
  return peers.filter((peer) => dialsOnly(peer, self));
}

/** Returns the connector that a peer dials; null for other peers, and if it is not listed. */
export function findOwnConnector({ via }: Peer, { peers }: Pick<NetworkMap, 'peers'>): Peer | null {
  if (via === undefined || via.connector === null) return null;
  return peers.find(({ id, type }) => id === via.connector && type === 'connector') ?? null;
}

/** True if its only connector is gone: until it has a new profile, the peer reaches no other. */
export function isStranded(peer: Peer, map: Pick<NetworkMap, 'peers'>): boolean {
  return peer.via != null && peer.via.connector !== null && findOwnConnector(peer, map) === null;
}

interface ConnectorInputs {
  readonly map: NetworkMap;
  readonly self: Peer;
  /** The peers that this host exchanges packets with directly. */
  readonly direct: readonly Peer[];
  readonly isSilent: (peer: Peer) => boolean;
  /** The best relay of this host, or null. */
  readonly relay: Peer | null;
}

/**
 * Returns the connector for each peer that dials only one. If this host does not reach it, the
 * relay, which may reach it, gets the peer. Connectors leave no peer to each other: no packet
 * loops.
 */
export function findDialledConnectors({
  map,
  self,
  direct,
  isSilent,
  relay,
}: ConnectorInputs): ReadonlyMap<Peer, Peer> {
  const reached = new Set(direct);
  const isUsable = (own: Peer) => {
    if (!reached.has(own)) return false;
    const hasOther = relay !== null && relay !== own && !isSilent(relay) && self.type !== 'connector';
    return !(isSilent(own) && hasOther);
  };
  return new Map(
    map.peers.flatMap((peer): [Peer, Peer][] => {
      if (!peer.via || peer.id === self.id || reached.has(peer)) return [];
      const own = findOwnConnector(peer, map);
      return own !== null && isUsable(own) ? [[peer, own]] : [];
    }),
  );
}

/** Finds the `silent` connectors that peers dial alone: WireGuard cannot move these peers. */
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
