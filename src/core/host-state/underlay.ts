import { covers } from '../net/cidr.ts';
import type { Underlay } from './actual.ts';

/**
 * The subnets by which the host reaches the outside. Interfaces of containers come and go; they are none of it, unless the host has no
 * default route that tells.
 */
export function findOutward({ connected, uplinks }: Pick<Underlay, 'connected' | 'uplinks'>): Underlay['connected'] {
  return connected.filter(({ link }) => uplinks.length === 0 || uplinks.includes(link));
}

/** Names where this host is, as the peers outside see it: another name may mean another address in front of the same peer. */
export function namePlace(surroundings: Underlay): string {
  const { gateways, addresses, paths = {} } = surroundings;
  const outward = findOutward(surroundings);
  const own = addresses.filter((address) => outward.some(({ prefix }) => covers(prefix, address)));
  const ways = outward.map(({ prefix, link }) => `${prefix} ${link}`);
  return [...gateways, ...own, ...ways, ...new Set(Object.values(paths))].toSorted().join(', ');
}
