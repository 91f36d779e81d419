import type { Underlay } from '../../host-state/actual.ts';
import type { NetworkMap, Peer } from '../../map/model.ts';
import type { Options } from '../../map/options.ts';
import { behindRoutes, isMapped } from '../../map/prefix-maps.ts';
import type { Prefix } from '../../net/cidr.ts';
import { assignedRoutes } from '../../routing/topology/route-owner.ts';
import { linkFinder } from '../links-toward.ts';

/** A path of packets through this host: two interfaces and two address ranges. */
export interface ForwardPath {
  /** The interfaces by which the packets arrive and leave; null if unknown. */
  readonly iif: string | null;
  readonly oif: string | null;
  readonly from: Prefix;
  readonly to: Prefix;
  /** The route of the network that is mapped to the LAN of this path; absent if none is. */
  readonly route?: Prefix;
  /** `new` begins a connection, `established` answers in one. */
  readonly state: 'new' | 'established';
}

/** A path through this host, or to one of its UDP ports. */
export interface PacketPath extends ForwardPath {
  /** Undefined for packets of any protocol and port. */
  readonly port?: number;
  /** False if no rule of this host gives them another destination. */
  readonly isRedirected?: boolean;
  /** The interface by which they will leave, at a hook where the kernel has not chosen it yet. */
  readonly toward?: string | null;
  /** True before the kernel finds the connection of a packet. */
  readonly isUntracked?: boolean;
}

export interface ForwardingNetwork {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly underlay: Underlay;
  readonly options: Pick<Options, 'maps'>;
}

/**
 * Returns the paths that a connector must forward: to each route that it serves, with the replies,
 * and from peer to peer if some meet only through connectors. A LAN's own connections do not count.
 */
export function forwardPaths({ link, map, self, underlay, options }: ForwardingNetwork): ForwardPath[] {
  const { cidr } = map;
  const linksToward = linkFinder(underlay);
  const routes = behindRoutes(assignedRoutes(map, self), options.maps).flatMap((each) => {
    const { local } = each;
    const links = linksToward(local);
    const named = isMapped(each) ? { route: each.route } : {};
    return (links.length > 0 ? links : [null]).flatMap((lan): ForwardPath[] => [
      { iif: link, oif: lan, from: cidr, to: local, ...named, state: 'new' },
      { iif: lan, oif: link, from: local, to: cidr, ...named, state: 'established' },
    ]);
  });
  if (!mayRelay(map, self)) return routes;
  const relayed = { iif: link, oif: link, from: cidr, to: cidr };
  return [...routes, { ...relayed, state: 'new' }, { ...relayed, state: 'established' }];
}

function mayRelay(map: NetworkMap, self: Peer): boolean {
  return map.peers.filter((peer) => peer.id !== self.id && peer.endpoint === null).length > 1;
}
