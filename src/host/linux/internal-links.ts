import { familyOf, lengthOf } from '../../core/net/cidr.ts';
import type { ShownLink, ShownRoute } from './ip/show.ts';

/**
 * Finds the interfaces that lead to containers, pods and virtual machines of this host alone. What is of an unknown kind leads outside.
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
  // A container has none, and its pairs of veth lead to the host around it.
  const hasCards = links.some((link) => link.kind === null && !isOfHypervisor(link));
  const podLinks = hasCards ? new Set<string>() : findPodLinks(routes);
  const known = new Map<string, boolean>();

  const isInternal = (link: ShownLink): boolean => {
    const found = known.get(link.name);
    if (found !== undefined) return found;
    // The kernel makes no rings; one that is shown all the same leads outside.
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
    // An Ethernet device without this header may be a VPN, unless it is in a bridge, as libvirt makes it.
    if (kind === 'tun') return isTap && (hasVirtioHeader || byName.get(master ?? '')?.kind === 'bridge');
    const below = onOthers.has(kind) ? byName.get(lower ?? '') : undefined;
    return below !== undefined && isInternal(below);
  };

  const judgePair = (link: ShownLink): boolean => {
    // Null where it is in another network namespace, as that of a container.
    const other = byName.get(link.lower ?? '');
    const master = byName.get(other?.master ?? '');
    // A VLAN on the other end, for example, may be in a bridge too.
    if (other && (uppers.get(other.name) ?? []).some((each) => each !== link)) return false;
    if (master?.kind === 'bridge') {
      const beyond = (members.get(master.name) ?? []).filter((member) => member !== other);
      return !uplinks.includes(master.name) && beyond.every(isInternal);
    }
    if (master !== undefined && master.kind !== 'vrf') return false;
    return hasCards || !isOnItsOwn(link) || (podLinks.has(link.name) && hasNoSubnet(link));
  };

  // What a member of a bridge brings, the bridge brings.
  const isOnItsOwn = ({ master }: ShownLink) => byName.get(master ?? '')?.kind !== 'bridge';
  return new Set(links.filter((link) => isOnItsOwn(link) && isInternal(link)).map(({ name }) => name));
}

/** Two ends, one of which is in a container in most cases. */
const pairs: ReadonlySet<string> = new Set(['veth', 'netkit']);

/** Kinds that lie on one other interface (ip-link(8)). */
const onOthers: ReadonlySet<string> = new Set(['vlan', 'macvlan', 'macvtap', 'ipvlan', 'ipvtap', 'macsec']);

/** The host's networks of VirtualBox and VMware, whose drivers name no kind. */
function isOfHypervisor({ kind, name }: ShownLink): boolean {
  return kind === null && /^(vboxnet|vmnet)\d+$/.test(name);
}

/**
 * The interfaces to pods, as Calico makes them: single addresses are behind them, and no router. A network card that waits for DHCP has no
 * such route. IPv6 is no evidence, because a neighbour can announce any prefix.
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
