import type { Peer } from '../../core/map/model.ts';
import { formatProbeTarget, type ProbeTarget } from '../../core/map/options.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { behindRoutes, type PrefixMap } from '../../core/map/prefix-maps.ts';
import { type Address, tryParseAddress } from '../../core/net/cidr.ts';
import { assignedRoutes } from '../../core/routing/topology/route-owner.ts';
import type { Joined } from '../../store/state/state.ts';

/** The LANs behind a connector, and the hosts that show whether they work. */
export interface Lan {
  readonly self: Peer;
  /** The routes that this connector is assigned to serve, in service or not. */
  readonly served: readonly PrefixMap[];
  readonly targets: readonly LanTarget[];
}

export interface LanTarget extends ProbeTarget {
  /** In the notation of `--probe`. */
  readonly name: string;
  /** Null if a resolver is needed. */
  readonly address: Address | null;
}

/** What to probe; null without probe targets, and for a host that is no connector. */
export function findLan(state: Joined): Lan | null {
  const { options } = state;
  const { map } = state.membership;
  const self = findOwnPeer(map, state);
  if (self?.type !== 'connector' || options.probes.length === 0) return null;
  const served = behindRoutes(assignedRoutes(map, self), options.maps);
  return { self, served, targets: options.probes.map(describeTarget) };
}

function describeTarget(probe: ProbeTarget): LanTarget {
  return { ...probe, name: formatProbeTarget(probe), address: tryParseAddress(probe.host) };
}
