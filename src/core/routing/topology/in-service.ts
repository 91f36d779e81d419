import type { NetworkMap, Peer, PeerFailure } from '../../map/model.ts';
import type { Prefix } from '../../net/cidr.ts';
import { assignedRoutes, findServing } from './route-owner.ts';
import { findEquals } from './spread.ts';
import { rankConnectors } from './topology.ts';

/** The role of this host for a route of its network. */
export interface Service {
  readonly is: 'in service' | 'standby' | 'cut off' | 'withdrawn' | 'unassigned';
  /** The other connectors that serve the route, the first in rank first. */
  readonly others: readonly Peer[];
}

export interface ServiceView {
  readonly map: NetworkMap;
  readonly self: Peer;
  /** The failures that this host observed; its own entry describes how the other hosts see it. */
  readonly failed: readonly PeerFailure[];
}

/**
 * Judges whether this host is the connector in service for a route: it serves the route, and no
 * other connector that serves it ranks before this host. `failed` has this host's own entry too:
 * - Silent while no packet of any peer arrives. It is then cut off, if another serves the route.
 * - Recovering after that, or after its tunnel came up, for as long as other hosts distrust it. It
 *   then ranks after healthy connectors, and before silent ones.
 *
 * So at most one connector is in service while all observe the same. While two recover at once,
 * possibly none is. If the network spreads its hosts over equals, each of the equals is in service.
 */
export function judgeService({ map, self, failed }: ServiceView): (route: Prefix) => Service {
  const { compare, isSilent } = rankConnectors(failed);
  const connectors = map.peers.filter(({ id, type }) => type === 'connector' && id !== self.id);
  const serving = findServing(map, connectors.toSorted(compare));
  const assigned = new Set(assignedRoutes(map, self));
  return (route) => {
    const others = serving(route);
    const [first] = others;
    if (!assigned.has(route)) return { is: 'unassigned', others };
    if (self.withdrawn.includes(route)) return { is: 'withdrawn', others };
    if (first === undefined) return { is: 'in service', others };
    if (isSilent(self)) return { is: 'cut off', others };
    const equals = findEquals({ map, failed }, route, [self, ...others].toSorted(compare));
    if (equals.includes(self)) return { is: 'in service', others };
    return { is: compare(first, self) < 0 ? 'standby' : 'in service', others };
  };
}
