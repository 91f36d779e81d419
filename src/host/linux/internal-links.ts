import { lengthOf } from '../../core/net/cidr.ts';
import type { ShownLink } from './ip/show.ts';

/**
 * Finds the interfaces that lead to containers, pods and virtual machines of this host alone. What is of an unknown kind leads outside.
 *
 * @param uplinks the interfaces of the default routes, which lead outside
 */
export function findInternalLinks(links: readonly ShownLink[], uplinks: readonly string[]): ReadonlySet<string> {
  const byName = new Map(links.map((link) => [link.name, link]));
  const members = Map.groupBy(links, ({ master }) => master);
  // A container has none, and its pairs of veth lead to the host around it.
  const hasCards = links.some((link) => link.kind === null && !isOfHypervisor(link));
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
    if (pairs.has(kind)) return hasCards || isOfPod(link);
    // An Ethernet device without this header may be a VPN, unless it is in a bridge, as libvirt makes it.
    if (kind === 'tun') return isTap && (hasVirtioHeader || byName.get(master ?? '')?.kind === 'bridge');
    const below = onOthers.has(kind) ? byName.get(lower ?? '') : undefined;
    return below !== undefined && isInternal(below);
  };

  // What a member of a bridge brings, the bridge brings.
  const isOnItsOwn = ({ master }: ShownLink) => byName.get(master ?? '')?.kind !== 'bridge';
  return new Set(links.filter((link) => isOnItsOwn(link) && isInternal(link)).map(({ name }) => name));
}

/** Two ends, one of which is in a container. */
const pairs: ReadonlySet<string> = new Set(['veth', 'netkit']);

/** Kinds that lie on one other interface (ip-link(8)). */
const onOthers: ReadonlySet<string> = new Set(['vlan', 'macvlan', 'macvtap', 'ipvlan', 'ipvtap', 'macsec']);

/** The host's networks of VirtualBox and VMware, whose drivers name no kind. */
function isOfHypervisor({ kind, name }: ShownLink): boolean {
  return kind === null && /^(vboxnet|vmnet)\d+$/.test(name);
}

/** The end of a pair outside a pod has no subnet: routes of single addresses lead to the pod, as with Calico and Cilium. */
function isOfPod({ addresses }: ShownLink): boolean {
  return addresses.every(({ address, subnet }) => address.startsWith('fe80:') || [32, 128].includes(lengthOf(subnet)));
}
