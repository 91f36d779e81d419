import type { NetworkMap, Peer } from '../map/model.ts';

/**
 * True of a peer that this host exchanges packets with itself. A peer that dials a connector alone is direct at that connector. If its
 * connector is unknown, it may dial any connector that has an endpoint.
 */
export function isDirect(peer: Peer, self: Peer, map: NetworkMap): boolean {
  if (!peer.via) return peer.endpoint !== null || self.endpoint !== null;
  const own = findOwnConnector(peer, map);
  return own === null ? self.type === 'connector' && self.endpoint !== null : own.id === self.id;
}

/** True of a peer that dials this host and no other: if it does not answer here, it answers nowhere. */
export function dialsOnly({ via }: Peer, self: Pick<Peer, 'id'>): boolean {
  return via !== undefined && via.connector === self.id;
}

/** The peers that dial this host and no other, as devices with a profile do. They hold its public key, and receive no other one. */
export function listDialling({ peers }: Pick<NetworkMap, 'peers'>, self: Pick<Peer, 'id'>): Peer[] {
  return peers.filter((peer) => dialsOnly(peer, self));
}

/** The connector that a peer dials; null for any other peer, and where the network has no such connector. */
export function findOwnConnector({ via }: Peer, { peers }: Pick<NetworkMap, 'peers'>): Peer | null {
  if (via === undefined || via.connector === null) return null;
  return peers.find(({ id, type }) => id === via.connector && type === 'connector') ?? null;
}

/** True of a peer whose only connector has left the network: until it has a new profile, it reaches no peer. */
export function isStranded(peer: Peer, map: Pick<NetworkMap, 'peers'>): boolean {
  return peer.via != null && peer.via.connector !== null && findOwnConnector(peer, map) === null;
}

interface ConnectorInputs {
  readonly map: NetworkMap;
  readonly self: Peer;
  /** The peers that this host exchanges packets with itself. */
  readonly direct: readonly Peer[];
  readonly isSilent: (peer: Peer) => boolean;
  /** The best relay of this host; null where there is none. */
  readonly relay: Peer | null;
}

/**
 * The connector that gets the packets for each peer that dials one alone. Left to the relay are peers whose connector this host does not
 * reach: the relay may reach it. A connector leaves none to another one, so that no packet goes round in circles.
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
