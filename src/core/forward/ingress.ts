import type { Underlay } from '../host-state/actual.ts';
import type { OpenedForwarding, Receipt } from '../host-state/receipt.ts';
import { allForwardingKey, forwardingKey } from '../host-state/sysctl-keys.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import { isPlainLinkName } from '../net/link-name.ts';
import { linkFinder } from './links-toward.ts';

/** What this host forwards apart from the network in question. */
export interface HostForwarding {
  readonly sysctls: Readonly<Record<string, string>>;
  /** Of this network. */
  readonly receipt: Receipt;
  /** The other networks of this host. */
  readonly others: readonly {
    readonly link: string;
    readonly isConnector: boolean;
    readonly address?: Address | null;
  }[];
  /** False where packet rules cannot be loaded; only a host that is no connector can do without. */
  readonly hasNft: boolean;
  /** What the networks of this host reach, in their own ways, outside a full tunnel. */
  readonly reached?: ReachedOutside | undefined;
  /** The VRF of the tunnel's interface, where it has one. */
  readonly vrf?: string | undefined;
}

/** What the networks of a host reach outside its full tunnel. */
export interface ReachedOutside {
  /** The addresses of the other networks' control planes. */
  readonly api: readonly Address[];
  /** Where the other networks send packets of WireGuard. */
  readonly endpoints: readonly SocketEndpoint[];
  /** The ports from which all networks send them, where these are fixed. */
  readonly ports: readonly number[];
}

/** A host on which nothing is known to be forwarded. */
export const noForwarding: HostForwarding = { sysctls: {}, receipt: [], others: [], hasNft: false };

/** An interface by which packets that a connector forwards come in, other than its tunnel. */
export interface Ingress {
  readonly link: string;
  /**
   * The interfaces that what comes in by it must not leave by, because its forwarding is on for this connector alone; null where
   * it was on before, or everything has been turned on since: then another tool decides on the packets.
   */
  readonly closed: readonly string[] | null;
  /** What is written down when its forwarding is turned on. */
  readonly opening: OpenedForwarding;
}

/** What becomes of the forwarding of a host's other interfaces. */
export interface Ingresses {
  readonly ingress: readonly Ingress[];
  /** Interfaces whose forwarding was turned on for this connector, and is not needed any more. */
  readonly unneeded: readonly string[];
  /** An earlier version turned everything on, and nothing else here can have come to rely on that: it is turned off again. */
  readonly revertsAll: boolean;
}

/**
 * The interfaces whose forwarding the routes of a connector need, and what else that opens: where the forwarding of an interface
 * was off, nothing that comes in by it may leave by any interface that is there at that time, or by a network card. One that
 * docker, libvirt or a VPN makes later is not among these.
 */
export function findIngresses(
  routes: readonly Prefix[],
  underlay: Underlay,
  { sysctls, receipt, others }: HostForwarding,
): Ingresses {
  const { links, uplinks } = underlay;
  const linksToward = linkFinder(underlay);
  const tunnels = new Set(others.map(({ link }) => link));
  const needed = new Set(
    routes.flatMap((route) => linksToward(route)).filter((link) => isPlainLinkName(link) && !tunnels.has(link)),
  );
  const hasSibling = others.some(({ isConnector }) => isConnector);
  const isForeign = (link: string) => !needed.has(link) && !tunnels.has(link) && !uplinks.includes(link);
  const revertsAll =
    sysctls[allForwardingKey] === '1' &&
    receipt.some((entry) => entry.made === 'sysctl' && entry.key === allForwardingKey) &&
    !hasSibling &&
    !links.some(({ name }) => isForeign(name));
  const all = revertsAll ? '0' : (sysctls[allForwardingKey] ?? '0');
  const isOn = (link: string) => !revertsAll && sysctls[forwardingKey(link)] === '1';
  const openings = new Map(
    receipt.flatMap((entry): [string, OpenedForwarding][] =>
      entry.made === 'sysctl' && entry.opening?.all === all ? [[entry.opening.link, entry.opening]] : [],
    ),
  );
  const opened = [...openings.keys()].filter((link) => !needed.has(link) && isOn(link));
  // Another connector of this host may need what was opened for this one.
  const entrances = [...needed, ...(hasSibling ? opened : [])].toSorted();
  // A card may come later than this program does when the host boots.
  const cards = links.filter(({ kind }) => kind === 'card').map(({ name }) => name);
  const bridges = new Set(links.filter(({ kind }) => kind === 'bridge').map(({ name }) => name));
  const foreign = others.filter(({ isConnector }) => !isConnector).map(({ link }) => link);
  const close = (link: string, names: readonly string[]) => {
    const outside = [...names, ...uplinks, ...cards, ...entrances].filter(
      // With br_netfilter what a bridge hands from port to port seems to be forwarded by it, to itself.
      (name) => isPlainLinkName(name) && !tunnels.has(name) && !(name === link && bridges.has(name)),
    );
    return [...new Set([...outside, ...foreign])].toSorted();
  };
  return {
    ingress: entrances.map((link) => {
      const known = isOn(link) ? openings.get(link) : undefined;
      const opening = known ?? { link, all, links: links.map(({ name }) => name) };
      const isOurs = known !== undefined || !isOn(link);
      return { link, closed: isOurs ? close(link, opening.links) : null, opening };
    }),
    unneeded: hasSibling ? [] : opened,
    revertsAll,
  };
}
