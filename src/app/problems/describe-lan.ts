import { findRouteTo } from '../../core/health/lan-health.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { findLan, type Lan, type LanTarget } from '../lan/lan.ts';

/** What a person should know of the LANs behind a connector, by its state and by what the daemon noted. */
export function describeLan(state: Joined, { dead, probed }: Pick<Notes, 'dead' | 'probed'>): string[] {
  const lan = findLan(state);
  if (lan === null) return [];
  const targets = lan.targets.map((target) => ({
    ...target,
    address: target.address ?? probed[target.name]?.address ?? null,
  }));
  return [
    ...lan.routes.filter((route) => dead.includes(route)).map((route) => describeDead(route, lan, targets)),
    ...targets.flatMap((target) => describeTarget(target, lan, probed[target.name]) ?? []),
  ];
}

function describeDead(route: Prefix, { self, routes }: Lan, targets: readonly LanTarget[]): string {
  const behind = targets.filter(({ address }) => address !== null && findRouteTo(address, routes) === route);
  const asked =
    behind.length === 0 ? 'no target has an address' : `target ${behind.map(({ name }) => name).join(', ')}`;
  const consequence = self.withdrawn.includes(route)
    ? 'the route is out of service here until it does'
    : 'the control plane still has the route in service here, and others send to it';
  return `the LAN behind ${route} does not answer (${asked}); ${consequence}`;
}

function describeTarget(
  { name, address }: LanTarget,
  { routes }: Lan,
  noted: Notes['probed'][string] | undefined,
): string | null {
  if (noted?.trouble) return `probe target ${name} cannot be asked: ${noted.trouble}`;
  if (address === null) return noted ? `probe target ${name} has no address; its name does not resolve` : null;
  if (findRouteTo(address, routes) !== null) return null;
  return `probe target ${name} lies behind none of the routes that this host serves, and tells nothing of them`;
}
