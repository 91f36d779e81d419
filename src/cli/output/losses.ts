import type { ListedNetwork } from '../../core/export/device-profile.ts';
import { findLosses, type ServingPeer, servesRoute } from '../../core/export/find-losses.ts';
import { listNames } from '../../core/util/list-names.ts';
import { warn } from './output.ts';

/** Warns of routes without another connector. @param wanted the peer's new routes; null for all */
export function warnOfLostRoutes(
  network: Pick<ListedNetwork<ServingPeer>, 'peers' | 'routes'>,
  peer: ServingPeer,
  wanted: readonly string[] | null,
  now = new Date(),
): void {
  const { routes } = findLosses(withoutExpired(network, now), [peer]);
  const lost = routes.filter((route) => !servesRoute({ ...peer, routes: wanted }, route));
  if (lost.length === 0) return;
  const these = lost.length === 1 ? 'this route' : 'these routes';
  warn(`no connector other than ${peer.name} serves ${lost.join(', ')}: hosts no longer reach ${these}`);
}

/** Warns about routes and devices that lose their connector once a peer leaves its network. */
export function warnOfLosses(
  network: Pick<ListedNetwork<ServingPeer>, 'peers' | 'routes'>,
  leaving: Pick<ServingPeer, 'id' | 'name'>,
  now = new Date(),
): void {
  const { routes, devices } = findLosses(withoutExpired(network, now), [leaving]);
  const { name } = leaving;
  if (routes.length > 0) {
    const [has, these] = routes.length === 1 ? ['has', 'this route'] : ['have', 'these routes'];
    warn(`without ${name}, ${routes.join(', ')} ${has} no connector: hosts do not reach ${these}`);
  }
  if (devices.length > 0) {
    const names = listNames(devices.map((device) => device.name));
    const profiles = devices.length === 1 ? '1 profile goes' : `${devices.length} profiles go`;
    const reach = devices.length === 1 ? 'reaches' : 'reach';
    warn(`${profiles} through ${name}: without it, ${names} ${reach} nothing`);
  }
}

/** Drops expired peers, which are in an administrator's list but serve nothing. */
function withoutExpired(network: Pick<ListedNetwork<ServingPeer>, 'peers' | 'routes'>, now: Date) {
  const isCurrent = ({ expires_at: end }: ServingPeer) => end === undefined || Date.parse(end) > now.getTime();
  return { ...network, peers: network.peers.filter(isCurrent) };
}
