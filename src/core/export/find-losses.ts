// The console bundles this file, which imports device-profile.ts alone.

import { isListedConnector, type ListedNetwork, type ListedPeer } from './device-profile.ts';

/** A peer as the API has it, as far as routes depend on it. */
export interface ServingPeer extends ListedPeer {
  /** The routes that it is to serve; all of them where there is no list. */
  readonly routes?: readonly string[] | null | undefined;
  /** When the peer leaves the map, or left it. */
  readonly expires_at?: string | undefined;
}

/** What stops working once some peers are out of their network. */
export interface Losses<Peer> {
  /** The routes without a connector. */
  readonly routes: readonly string[];
  /** The devices whose profile dials a connector that leaves. */
  readonly devices: readonly Peer[];
}

/** Finds what only these peers serve, and the devices that dial them and no other peer. */
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

/** Whether hosts reach a route through this peer; a suspended connector is out of the map. */
export function servesRoute(peer: ServingPeer, route: string): boolean {
  const { routes, withdrawn = [] } = peer;
  return isListedConnector(peer) && (routes?.includes(route) ?? true) && !withdrawn.includes(route);
}
