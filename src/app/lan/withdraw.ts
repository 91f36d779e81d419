import { type CpnError, expectCpnError } from '../../core/errors/index.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { comparePrefixes, type Prefix } from '../../core/net/cidr.ts';
import { assignedRoutes } from '../../core/routing/topology/route-owner.ts';
import { sameMembers } from '../../core/util/same-data.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { accessOf } from '../access.ts';
import { withExtensions } from '../service-features.ts';
import type { ServiceTools, Tools } from '../tools.ts';

/** Milliseconds. A command waits for the answer; the daemon tries again at the next pass. */
const deadline = 10_000;

/**
 * What this host should have out of service: while it is drained, or its packet rules do not load, all that it is there to serve,
 * its relaying included; else the routes whose LAN is dead, or to whose LAN this host has no way. Sorted; nothing for a host that is no connector, or that its
 * network no longer lists.
 */
export function withdrawnBy(
  state: Joined,
  { dead, ways: lanRoutes, unloaded }: Pick<Notes, 'dead' | 'ways' | 'unloaded'> = {
    dead: [],
    ways: null,
    unloaded: null,
  },
): readonly Prefix[] {
  const { map } = state.membership;
  const self = findOwnPeer(state.membership.map, state);
  if (self?.type !== 'connector') return [];
  const assigned = assignedRoutes(map, self);
  const withdrawn =
    state.drained || unloaded !== null
      ? [...assigned, map.cidr]
      : assigned.filter((route) => dead.includes(route) || lanRoutes?.[route]?.gone != null);
  return withdrawn.toSorted(comparePrefixes);
}

/**
 * Has the control plane withdraw exactly `wanted`; sends nothing where its newest map has that already.
 *
 * @returns what kept it from being so
 */
export async function reportWithdrawn(
  tools: ServiceTools,
  state: Joined,
  wanted: readonly Prefix[],
): Promise<CpnError | null> {
  const self = findOwnPeer(state.membership.map, state);
  return self === undefined || sameMembers(self.withdrawn, wanted) ? null : withdraw(tools, state, wanted);
}

/**
 * Reports to the control plane what a connector has out of service now that its packet rules do not load, or load again. A failure
 * is a warning: the daemon, or the next `reconcile`, tries again.
 */
export async function reportLoading(tools: Tools, state: Joined): Promise<void> {
  const self = findOwnPeer(state.membership.map, state);
  if (self?.type !== 'connector') return;
  const error = await withdraw(tools, state, withdrawnBy(state, await tools.store.readNotes(state.interface)));
  if (error !== null) tools.warn(error.message);
}

/**
 * As {@link reportWithdrawn}, whatever the newest map has. Sends nothing without a token.
 *
 * @returns what kept it from being so
 */
export async function withdraw(
  tools: ServiceTools,
  state: Joined,
  wanted: readonly Prefix[],
): Promise<CpnError | null> {
  const access = accessOf(state);
  if (access === null) return null;
  try {
    const { id } = state.membership.peer;
    await withExtensions(tools, state, { deadlineMs: deadline }, (service) =>
      service.withdraw(access.network, id, access.token, wanted),
    );
    return null;
  } catch (error) {
    return expectCpnError(error);
  }
}
