import type { Underlay } from '../../host-state/actual.ts';
import type { NetworkMap, Peer } from '../../map/model.ts';
import type { Prefix } from '../../net/cidr.ts';
import { assignedRoutes } from '../../routing/route-owner.ts';
import { linkFinder } from '../links-toward.ts';

/** A way that packets take through this host: between which interfaces, and between which addresses. */
export interface ForwardPath {
  /** The interface they come by, and the one they leave by; null where that is not known. */
  readonly iif: string | null;
  readonly oif: string | null;
  readonly from: Prefix;
  readonly to: Prefix;
  /** `new` begins a connection, `established` answers in one. */
  readonly state: 'new' | 'established';
}

/** A way through this host, or to a UDP port of it. */
export interface PacketPath extends ForwardPath {
  /** Undefined for packets of any protocol and port. */
  readonly port?: number;
  /** False where no rule of this host gives them another destination on their way. */
  readonly isRedirected?: boolean;
  /** The interface that they leave by, at a hook where the kernel has not chosen it yet. */
  readonly toward?: string | null;
  /** True before the kernel finds the connection of a packet. */
  readonly isUntracked?: boolean;
}

/** What the ways through a connector follow from. */
export interface ForwardingNetwork {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly underlay: Underlay;
}

/**
 * The ways that packets must be able to take through a connector: from the network to each route that it is there to serve, and back
 * as answers; and from peer to peer where some meet only through a connector. What a LAN begins by itself is left to its operator.
 */
export function forwardPaths({ link, map, self, underlay }: ForwardingNetwork): ForwardPath[] {
  const { cidr } = map;
  const linksToward = linkFinder(underlay);
  const routes = assignedRoutes(map, self).flatMap((route) => {
    const links = linksToward(route);
    return (links.length > 0 ? links : [null]).flatMap((lan): ForwardPath[] => [
      { iif: link, oif: lan, from: cidr, to: route, state: 'new' },
      { iif: lan, oif: link, from: route, to: cidr, state: 'established' },
    ]);
  });
  if (!relays(map, self)) return routes;
  const relayed = { iif: link, oif: link, from: cidr, to: cidr };
  return [...routes, { ...relayed, state: 'new' }, { ...relayed, state: 'established' }];
}

function relays(map: NetworkMap, self: Peer): boolean {
  const hidden = map.peers.filter((peer) => peer.id !== self.id && peer.endpoint === null);
  return hidden.length > 1 && !self.withdrawn.includes(map.cidr);
}
