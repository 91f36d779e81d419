import { type Address, covers, familyOf } from '../net/cidr.ts';
import type { Underlay } from './actual.ts';

/** The subnets toward the outside. Temporary container links count only without a default route. */
export function findOutward({ connected, uplinks }: Pick<Underlay, 'connected' | 'uplinks'>): Underlay['connected'] {
  return connected.filter(({ link }) => uplinks.length === 0 || uplinks.includes(link));
}

/**
 * Names the host's location: another name may mean another address in front of the same peer. An
 * unplugged cable changes it, although the link keeps its addresses and routes.
 */
export function namePlace(underlay: Underlay): string {
  const { gateways, addresses, links: all, paths = {} } = underlay;
  const outward = findOutward(underlay).filter(({ link }) => !all.some(({ name, isDown }) => isDown && name === link));
  const own = addresses.filter((address) => outward.some(({ prefix }) => covers(prefix, address)));
  const links = outward.map(({ prefix, link }) => `${prefix} ${link}`);
  return [...gateways, ...own, ...links, ...new Set(Object.values(paths))].toSorted().join(', ');
}

/**
 * False if the host has no route to the address, as without a carrier or while it wakes; true if
 * unknown. `underlay` is from a pass that could read links and routes.
 */
export function hasPathTo(address: Address, underlay: Underlay): boolean {
  const { uplinks, uplinks6, connected, routed, reached = [], links, paths = {} } = underlay;
  // A link without carrier keeps its addresses and routes.
  const down = new Set(links.filter(({ isDown }) => isDown).map(({ name }) => name));
  const isLive = (link: string) => !down.has(link);
  const defaults = familyOf(address) === 6 ? uplinks6 : uplinks;
  if (defaults === undefined || defaults.some(isLive)) return true;
  if ([...connected, ...routed, ...reached].some(({ prefix, link }) => isLive(link) && covers(prefix, address)))
    return true;
  // A default route in another table shows in the path to the control plane, unless the control
  // plane runs on this host or is forwarded there.
  const outside = links.filter(({ name, isInternal }) => isLive(name) && !isInternal).map(({ name }) => name);
  return Object.values(paths).some((path) => {
    const [link = ''] = path.split(' ');
    return link === 'lo' ? outside.length > 0 : outside.includes(link);
  });
}
