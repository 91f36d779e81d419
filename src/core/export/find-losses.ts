// The console bundles this file, which must import only device-profile.ts.

import { isListedConnector, type ListedNetwork, type ListedPeer } from './device-profile.ts';

/** The fields of an API peer on which routes depend. */
export interface ServingPeer extends ListedPeer {
  /** The routes that it serves. All routes if absent or null. */
  readonly routes?: readonly string[] | null | undefined;
  /** When the peer leaves, or left, the map. */
  readonly expires_at?: string | undefined;
}

/** The consequences of removing some peers from their network. */
export interface Losses<Peer> {
  /** The routes that lose their last connector. */
  readonly routes: readonly string[];
  /** The devices whose profile dials a removed connector. */
  readonly devices: readonly Peer[];
}

/** Finds the routes that only these peers serve, and the devices that dial them. */
export function findLosses<Peer extends ServingPeer>(
  { peers, routes }: Pick<ListedNetwork<Peer>, 'peers' | 'routes'>,
  leaving: readonly Pick<Peer, 'id'>[],
): Losses<Peer> {
  const gone = new Set(leaving.map(({ id }) => id));
  return {
    routes: routes.filter((route) => {
      const serving = peers.filter((peer) => servesRoute(peer, route));
      return serving.length > 0 && serving.every(({ id }) => gone.has(id));
    }),
    devices: peers.filter(({ id, profile }) => profile !== undefined && gone.has(profile.connector) && !gone.has(id)),
  };
}

/** True if hosts reach a route through this peer. A suspended connector is not in the map. */
export function servesRoute(peer: ServingPeer, route: string): boolean {
  const { routes, withdrawn = [] } = peer;
  return isListedConnector(peer) && (routes?.includes(route) ?? true) && !withdrawn.includes(route);
}
