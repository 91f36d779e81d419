import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import { findConnectors } from './connectors.ts';

export type BulkAction = 'suspend' | 'resume' | 'expire' | 'remove';

const mostNames = 12;

/** The names of peers, for a sentence; of many the first ones and how many more there are. */
export function namePeers(peers: readonly Pick<Peer, 'name'>[]): string {
  const rest = peers.length - mostNames;
  const names = peers.slice(0, mostNames).map(({ name }) => name);
  return rest > 0 ? `${names.join(', ')} and ${rest} more` : names.join(', ');
}

export const countPeers = (count: number) => (count === 1 ? '1 peer' : `${count} peers`);

/** The routes that no connector serves any longer once these peers are out of the network. */
export function findLostRoutes(
  { peers, routes }: Pick<Network, 'peers' | 'routes'>,
  leaving: readonly Peer[],
): readonly string[] {
  const gone = new Set(leaving.map(({ id }) => id));
  return routes.filter((route) => {
    const serving = findConnectors(peers, route);
    return serving.length > 0 && serving.every(({ id }) => gone.has(id));
  });
}
