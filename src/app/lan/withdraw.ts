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

/** Milliseconds. A command waits for the reply; the daemon retries at the next pass. */
const deadline = 10_000;

/**
 * Returns what this host should have out of service, sorted. If it is drained, or its packet rules
 * do not load: all routes and its relaying. Else: routes with a dead or unreachable LAN, and its
 * relaying if another program drops what it relays. Empty for a host that is no connector, or that
 * is unlisted.
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
  const isGone = (prefix: Prefix) => lanRoutes?.[prefix]?.gone != null;
  const withdrawn =
    state.drained || unloaded !== null
      ? [...assigned, map.cidr]
      : [...assigned.filter((route) => dead.includes(route) || isGone(route)), ...[map.cidr].filter(isGone)];
  return withdrawn.toSorted(comparePrefixes);
}

/**
 * Makes the control plane withdraw exactly `wanted`. Sends nothing if the newest received map has
 * that.
 * @returns the error, or null
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
 * States in a network that spreads its hosts whether this connector masquerades, if the newest map
 * has another statement.
 * @returns the error, or null
 */
export async function reportMasquerading(tools: ServiceTools, state: Joined): Promise<CpnError | null> {
  const { map } = state.membership;
  const { masquerade } = state.options;
  const self = findOwnPeer(map, state);
  const access = accessOf(state);
  if (!map.spread || access === null || self === undefined) return null;
  if ((self.masquerades ?? false) === masquerade) return null;
  try {
    await withExtensions(tools, state, { deadlineMs: deadline }, (service) =>
      service.announceMasquerading(access.network, self.id, access.token, masquerade),
    );
    return null;
  } catch (error) {
    return expectCpnError(error);
  }
}

/**
 * Reports what a connector has out of service, after its packet rules failed to load or loaded
 * again. If the report fails, this warns, and the daemon or the next `reconcile` repeats it.
 */
export async function reportLoading(tools: Tools, state: Joined): Promise<void> {
  const self = findOwnPeer(state.membership.map, state);
  if (self?.type !== 'connector') return;
  const error = await withdraw(tools, state, withdrawnBy(state, await tools.store.readNotes(state.interface)));
  if (error !== null) tools.warn(error.message);
}

/**
 * Like {@link reportWithdrawn}, regardless of the newest map. Sends nothing without a token.
 *
 * @returns the error, or null
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
