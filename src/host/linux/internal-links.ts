import { familyOf, lengthOf } from '../../core/net/cidr.ts';
import type { ShownLink, ShownRoute } from './ip/show.ts';

/**
 * Finds the interfaces that lead only to containers, pods and virtual machines of this host. An
 * interface of an unknown kind counts as external.
 *
 * @param uplinks the interfaces of the default routes, which lead outside
 */
export function findInternalLinks(
  links: readonly ShownLink[],
  uplinks: readonly string[],
  routes: readonly ShownRoute[],
): ReadonlySet<string> {
  const byName = new Map(links.map((link) => [link.name, link]));
  const members = Map.groupBy(links, ({ master }) => master);
  const uppers = Map.groupBy(links, ({ lower }) => lower);
  // A container has no network card. Its veth devices lead outside, so they are not internal.
  const hasCards = links.some((link) => link.kind === null && !isOfHypervisor(link));
  const podLinks = hasCards ? new Set<string>() : findPodLinks(routes);
  const known = new Map<string, boolean>();

  const isInternal = (link: ShownLink): boolean => {
    const found = known.get(link.name);
    if (found !== undefined) return found;
    // The kernel allows no cycles. If the output shows one, its interfaces count as external.
    known.set(link.name, false);
    const is = !uplinks.includes(link.name) && judge(link);
    known.set(link.name, is);
    return is;
  };

  const judge = (link: ShownLink): boolean => {
    const { kind, name, master, lower, isTap, hasVirtioHeader } = link;
    if (kind === null) return isOfHypervisor(link);
    if (kind === 'bridge') return (members.get(name) ?? []).every(isInternal);
    if (pairs.has(kind)) return judgePair(link);
    // A tap device without this header may be a VPN. libvirt's tap devices are in a bridge.
    if (kind === 'tun') return isTap && (hasVirtioHeader || byName.get(master ?? '')?.kind === 'bridge');
    const below = onOthers.has(kind) ? byName.get(lower ?? '') : undefined;
    return below !== undefined && isInternal(below);
  };

  const judgePair = (link: ShownLink): boolean => {
    // Undefined if the other end is in another network namespace, such as that of a container.
    const other = byName.get(link.lower ?? '');
    const master = byName.get(other?.master ?? '');
    // An interface above the other end, such as a VLAN, may be in a bridge too.
    if (other && (uppers.get(other.name) ?? []).some((each) => each !== link)) return false;
    if (master?.kind === 'bridge') {
      const beyond = (members.get(master.name) ?? []).filter((member) => member !== other);
      return !uplinks.includes(master.name) && beyond.every(isInternal);
    }
    if (master !== undefined && master.kind !== 'vrf') return false;
    return hasCards || !isOnItsOwn(link) || (podLinks.has(link.name) && hasNoSubnet(link));
  };

  // The bridge represents its members, so members are left out of the result.
  const isOnItsOwn = ({ master }: ShownLink) => byName.get(master ?? '')?.kind !== 'bridge';
  return new Set(links.filter((link) => isOnItsOwn(link) && isInternal(link)).map(({ name }) => name));
}

/** Kinds that come in pairs. Usually one end is in a container. */
const pairs: ReadonlySet<string> = new Set(['veth', 'netkit']);

/** Kinds that are built on one other interface (ip-link(8)). */
const onOthers: ReadonlySet<string> = new Set(['vlan', 'macvlan', 'macvtap', 'ipvlan', 'ipvtap', 'macsec']);

/** The host-only networks of VirtualBox and VMware. Their drivers report no kind. */
function isOfHypervisor({ kind, name }: ShownLink): boolean {
  return kind === null && /^(vboxnet|vmnet)\d+$/.test(name);
}

/**
 * Finds pod interfaces of Calico: their routes lead to single addresses without a gateway. A card
 * that waits for DHCP has no such route. IPv6 does not count: a neighbour can announce any prefix.
 */
function findPodLinks(routes: readonly ShownRoute[]): ReadonlySet<string> {
  const isToPod = ({ prefix, gateways }: ShownRoute) =>
    familyOf(prefix) === 4 && lengthOf(prefix) === 32 && gateways.length === 0;
  const outward = new Set(routes.filter(({ gateways }) => gateways.length > 0).flatMap(({ links }) => links));
  return new Set(routes.filter(isToPod).flatMap(({ links }) => links.filter((link) => !outward.has(link))));
}

function hasNoSubnet({ addresses }: ShownLink): boolean {
  return addresses.every(({ address, subnet }) => address.startsWith('fe80:') || [32, 128].includes(lengthOf(subnet)));
}

/** Kinds whose packets travel inside other packets (ip-link(8)). */
const overlays: ReadonlySet<string> = new Set([
  ...['vxlan', 'geneve', 'bareudp', 'gre', 'gretap', 'erspan', 'ip6gre', 'ip6gretap', 'ip6erspan'],
  ...['ipip', 'sit', 'ip6tnl', 'vti', 'vti6', 'xfrm', 'wireguard', 'tun', 'l2tp', 'gtp', 'amt', 'ovpn'],
]);

/**
 * Finds the interfaces whose packets travel inside packets of another interface, and bridges and
 * VLANs on them. The uplinks do not count: they lead outside in any case.
 */
export function findOverlayLinks(links: readonly ShownLink[], uplinks: readonly string[]): ReadonlySet<string> {
  const names = new Set(links.filter(({ kind }) => kind !== null && overlays.has(kind)).map(({ name }) => name));
  // A VLAN may be on a bridge of an overlay: each round finds those on the links of the one before.
  for (let before = -1; before < names.size; ) {
    before = names.size;
    for (const { name, lower, master } of links) {
      if (lower !== null && names.has(lower)) names.add(name);
      if (names.has(name) && master !== null) names.add(master);
    }
  }
  return new Set([...names].filter((name) => !uplinks.includes(name)));
}
