import type { Underlay } from '../host-state/actual.ts';
import type { OpenedForwarding, Receipt } from '../host-state/receipt.ts';
import { allForwardingKey, forwardingKey } from '../host-state/sysctl-keys.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import { isPlainLinkName } from '../net/link-name.ts';
import { linkFinder } from './links-toward.ts';

/** What this host forwards other than for this network. */
export interface HostForwarding {
  readonly sysctls: Readonly<Record<string, string>>;
  readonly receipt: Receipt;
  /** The other networks of this host. */
  readonly others: readonly {
    readonly link: string;
    readonly isConnector: boolean;
    readonly address?: Address | null;
  }[];
  /** False if packet rules cannot be loaded. Only a host that is no connector works then. */
  readonly hasNft: boolean;
  /** True on a platform without packet rules: it ignores the rules of a closed network. */
  readonly ignoresRules?: true;
  /** What the networks of this host reach directly, outside a full tunnel. */
  readonly reached?: ReachedOutside | undefined;
  /** The VRF of the tunnel's interface, if it has one. */
  readonly vrf?: string | undefined;
}

/** What the networks of a host reach outside its full tunnel. */
export interface ReachedOutside {
  /** The addresses of the other networks' control planes. */
  readonly api: readonly Address[];
  /** The endpoints to which the other networks send WireGuard packets. */
  readonly endpoints: readonly SocketEndpoint[];
  /** The source ports of all networks, as far as they are fixed. */
  readonly ports: readonly number[];
}

export const noForwarding: HostForwarding = { sysctls: {}, receipt: [], others: [], hasNft: false };

/** An interface, other than the tunnel, by which packets that a connector forwards arrive. */
export interface Ingress {
  readonly link: string;
  /**
   * Interfaces by which packets from this one must not leave: its forwarding is on only for this
   * connector. Null if it was on before, or is now on for all interfaces: another tool decides.
   */
  readonly closed: readonly string[] | null;
  /** The record that is written when its forwarding is turned on. */
  readonly opening: OpenedForwarding;
}

/** The forwarding of a host's other interfaces. */
export interface Ingresses {
  readonly ingress: readonly Ingress[];
  /** Interfaces whose forwarding was turned on for this connector and is no longer needed. */
  readonly unneeded: readonly string[];
  /**
   * True to turn off forwarding for all interfaces, which an earlier version turned on. Nothing
   * else on this host can rely on it.
   */
  readonly revertsAll: boolean;
}

/**
 * Finds the interfaces whose forwarding a connector needs. If it was off, their packets may leave
 * by no existing interface and no network card, but by later ones of Docker, libvirt or a VPN.
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
  // During boot, a network card may appear after this program starts.
  const cards = links.filter(({ kind }) => kind === 'card').map(({ name }) => name);
  const bridges = new Set(links.filter(({ kind }) => kind === 'bridge').map(({ name }) => name));
  const foreign = others.filter(({ isConnector }) => !isConnector).map(({ link }) => link);
  const close = (link: string, names: readonly string[]) => {
    const outside = [...names, ...uplinks, ...cards, ...entrances].filter(
      // With br_netfilter, packets from port to port of a bridge appear as forwarded from the
      // bridge to itself.
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
