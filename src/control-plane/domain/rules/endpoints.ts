import type { Selector } from '../../../core/map/access-rules.ts';
import { comparePrefixes, covers, type Prefix, rangeOf } from '../../../core/net/cidr.ts';

/** A peer in the map of a network, as far as rules depend on it. */
export interface RuledPeer {
  readonly id: number;
  readonly name: string;
  readonly address: string;
  readonly tags: readonly string[];
  readonly enforcesRules: boolean;
  readonly followsRelay: boolean;
  readonly hasEndpoint: boolean;
  readonly isConnector: boolean;
  /** The routes that a connector serves. */
  readonly served: readonly Prefix[];
  /** The routes of a profile whose only peer is a connector; null for a peer without one. */
  readonly profile: readonly Prefix[] | null;
}

export interface RuledNetwork {
  readonly routes: readonly Prefix[];
  readonly peers: readonly RuledPeer[];
}

/** One end of a connection: a peer, or the addresses of a prefix that no narrower end has. */
export interface Endpoint {
  /** As users write it. */
  readonly selector: string;
  readonly peer: RuledPeer | null;
  readonly prefix: Prefix | null;
}

/**
 * The ends of connections in a network: its peers, its routes, and the parts of routes that these
 * selectors name. Rules decide the same on all addresses of an end.
 */
export function listEndpoints({ peers, routes }: RuledNetwork, selectors: readonly Selector[]): Endpoint[] {
  const named = selectors.flatMap((selector) => ('prefix' in selector ? selector.prefix : []));
  const parts = named.filter((prefix) => routes.some((route) => covers(route, prefix)));
  const isRoute = new Set(routes);
  return [
    ...peers.map((peer) => ({ selector: `peer:${peer.name}`, peer, prefix: null })),
    ...withoutFilled([...new Set([...routes, ...parts])]).map((prefix) => ({
      selector: `${isRoute.has(prefix) ? 'route' : 'cidr'}:${prefix}`,
      ...{ peer: null, prefix },
    })),
  ];
}

/** Leaves out prefixes of which narrower ones have all addresses. Sorts the others. */
function withoutFilled(prefixes: readonly Prefix[]): Prefix[] {
  const sorted = prefixes.toSorted(comparePrefixes);
  return sorted.filter((prefix, place) => {
    const { first, last } = rangeOf(prefix);
    let next = first;
    for (let at = place + 1; at < sorted.length && next <= last; at += 1) {
      const range = rangeOf(sorted[at] as Prefix);
      if (range.first > next) break;
      if (range.first === next) next = range.last + 1n;
    }
    return next <= last;
  });
}
