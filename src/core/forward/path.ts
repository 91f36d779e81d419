import type { Surroundings } from '../actual.ts';
import type { Prefix } from '../cidr.ts';
import type { NetworkMap, Peer } from '../model.ts';
import { assignedRoutes } from '../route-owner.ts';
import { linksToward } from './ways.ts';

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

/** What the ways through a connector follow from. */
export interface Crossing {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly surroundings: Surroundings;
}

/**
 * The ways that packets must be able to take through a connector: from the network to each route that it is there to serve, and back
 * as answers; and from peer to peer where some meet only through a connector. What a LAN begins by itself is left to whoever runs it.
 */
export function forwardPaths({ link, map, self, surroundings }: Crossing): ForwardPath[] {
  const { cidr } = map;
  const routes = assignedRoutes(map, self).flatMap((route) =>
    linksOrUnknown(route, surroundings).flatMap((lan): ForwardPath[] => [
      { iif: link, oif: lan, from: cidr, to: route, state: 'new' },
      { iif: lan, oif: link, from: route, to: cidr, state: 'established' },
    ]),
  );
  return [...routes, ...(relays(map, self) ? relayed(link, cidr) : [])];
}

function relayed(link: string, cidr: Prefix): ForwardPath[] {
  const states = ['new', 'established'] as const;
  return states.map((state) => ({ iif: link, oif: link, from: cidr, to: cidr, state }));
}

function relays(map: NetworkMap, self: Peer): boolean {
  const hidden = map.peers.filter((peer) => peer.id !== self.id && peer.endpoint === null);
  return hidden.length > 1 && !self.withdrawn.includes(map.cidr);
}

function linksOrUnknown(route: Prefix, surroundings: Surroundings): readonly (string | null)[] {
  const links = linksToward(route, surroundings);
  return links.length > 0 ? links : [null];
}
