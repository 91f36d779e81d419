import { AddressRefused, WrongUsage } from '../../core/errors/index.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import type { Peer } from '../../core/map/model.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import { findAddressConflict } from '../../core/routing/guard.ts';
import { locateOutside } from '../../core/routing/reach-outside.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { removeFromService } from '../networks/remove-peer.ts';
import { deleteState } from '../reconcile/cleanup.ts';
import { othersOf } from '../reconcile/desire-network.ts';
import { resolveNames } from '../reconcile/names/resolve-names.ts';
import { observeOptionsFor } from '../reconcile/observe-options.ts';
import { constrainRoutes, readEarlier } from '../reconcile/route-constraints.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { isRemoved } from './check-membership.ts';
import type { JoinRequest } from './join-request.ts';
import { describePossibleMove, isMovedNetwork } from './moved-networks.ts';
import { replaceMembership } from './rejoin.ts';

/** An enrolled host before any change on it. */
export interface EnrolledNetwork {
  /** With the addresses of the network's names. */
  readonly state: Joined;
  readonly actual: Actual;
  /** True if it replaced a membership that ended. */
  readonly isReplacement: boolean;
}

/**
 * Replaces an ended membership of the same network; reverts a conflicting enrolment.
 *
 * @throws WrongUsage and AddressRefused after the enrolment was reverted
 */
export async function resolveConflicts(
  tools: Tools,
  state: Joined,
  others: readonly Joined[],
  request: JoinRequest,
  isNew = false,
): Promise<EnrolledNetwork> {
  const existing = others.find((other) => isSameNetwork(state, other));
  const enrolled = await observeHost(tools, state);
  if (!isNew && existing === undefined) return enrolled;
  const { interface: wanted } = request;
  const isWanted = wanted === null || wanted === existing?.interface;
  const former = existing && isWanted && (await isRemoved(tools, existing)) ? existing : null;
  await refuseConflict(tools, enrolled, former);
  if (former !== null) {
    const replaced = await replaceMembership(tools, enrolled.state, former, request);
    return { ...(await observeHost(tools, replaced)), isReplacement: true };
  }
  if (wanted !== null && wanted !== state.interface) {
    await undoEnrollment(tools, state);
    throw new WrongUsage(`${wanted} is of another network than ${state.membership.map.name}; leave out --interface`);
  }
  return enrolled;
}

async function observeHost(
  tools: Pick<Tools, 'host' | 'store' | 'savedConfigs'>,
  state: Joined,
): Promise<EnrolledNetwork> {
  const resolved = await resolveNames(tools, state);
  const located: Joined = resolved === state.resolved ? state : { ...state, resolved };
  if (located !== state) await tools.store.write(located);
  return { state: located, actual: await tools.host.observe(observeOptionsFor(located)), isReplacement: false };
}

/** Runs without progress output: the screen keeps the phase that failed. */
async function undoEnrollment(tools: Tools, state: Joined): Promise<void> {
  await removeFromService({ ...tools, progress: () => {} }, state);
  await deleteState(tools, state);
}

/**
 * Reverts a second enrolment in a network, or one whose address hides a peer of another network.
 *
 * @param former the membership that this one replaces; it is no conflict
 */
async function refuseConflict(tools: Tools, enrolled: EnrolledNetwork, former: Joined | null): Promise<void> {
  const { state } = enrolled;
  const { states: all } = await tools.store.list();
  const states = all.filter((other) => other.interface !== former?.interface);
  const others = states.filter(isJoined).filter((other) => other.interface !== state.interface);
  const existing = others.find((other) => isSameNetwork(state, other));
  const moved = others.filter((other) => isMovedNetwork(state, other));
  const isDeleted = ({ deletion }: Joined) => deletion !== undefined;
  const present = others.filter((other) => !isDeleted(other));
  const hidden = findHiddenPeer(state, present);
  const conflict =
    (existing && describeExisting(existing)) ??
    (moved.length > 0 ? describePossibleMove(moved, state) : hidden && describeHidden(state, hidden));
  const refusal = await findAddressRefusal(tools, enrolled, states);
  if (conflict === null && refusal === null) {
    const later = findHiddenPeer(state, others.filter(isDeleted));
    if (later !== null) warnOfReturn(tools, state, later);
    return;
  }
  await undoEnrollment(tools, state);
  throw conflict === null ? refusal : new WrongUsage(conflict);
}

/** Checks only a new address: an address that the host had before may be its own resolver's. */
async function findAddressRefusal(
  tools: Pick<Tools, 'host' | 'store' | 'savedConfigs'>,
  { state, actual }: EnrolledNetwork,
  states: readonly State[],
): Promise<AddressRefused | null> {
  const { resolved, membership } = state;
  const { map, peer } = membership;
  const locate = locateOutside({ map, resolved });
  const endpoints = map.peers.flatMap(({ endpoint }) => locate(endpoint)?.host ?? []);
  const earlier = await readEarlier(tools, state, states);
  const constraints = constrainRoutes({
    state,
    others: othersOf(state, states),
    earlier,
    observed: actual,
    sshClients: await tools.host.sshClients(),
    recalled: [],
    saved: null,
    disallowed: [],
  });
  const reason = findAddressConflict(peer.address, constraints, endpoints);
  return reason === null ? null : new AddressRefused(map.name, peer.address, reason);
}

function isSameNetwork({ service, membership: { map } }: Joined, other: Joined): boolean {
  return service.url === other.service.url && other.membership.map.id === map.id;
}

export function describeExisting(existing: Joined): string {
  const { interface: link, membership } = existing;
  const joined = `this host is in network ${membership.map.name} already, as ${link}`;
  return `${joined}; "cpn leave ${link}" first, or "cpn leave ${link} --keep-peer" if this host is the copy of another one`;
}

interface HiddenPeer {
  readonly peer: Peer;
  readonly other: Joined;
}

/** A host sends no packet to its own address, so a peer with that address would be unreachable. */
function findHiddenPeer({ membership: { peer } }: Joined, others: readonly Joined[]): HiddenPeer | null {
  for (const other of others) {
    const own = ownKeys(other);
    const hidden = other.membership.map.peers.find(
      ({ address, publicKey }) => address === peer.address && !own.includes(publicKey),
    );
    if (hidden) return { peer: hidden, other };
  }
  return null;
}

function describeHidden({ membership: { map, peer } }: Joined, { peer: hidden, other }: HiddenPeer): string {
  const { interface: link, membership } = other;
  const there = `peer ${hidden.name} of network ${membership.map.name} (${link})`;
  return `network ${map.name} gave this host ${peer.address}, which is the address of ${there}, and would hide it; join again with another key for another address, or "cpn leave ${link}" first`;
}

/** The tunnel of a deleted network is down, so the conflict begins when the network returns. */
function warnOfReturn(
  tools: Pick<Tools, 'warn'>,
  { membership: { peer } }: Joined,
  { peer: hidden, other }: HiddenPeer,
): void {
  const { interface: link, membership } = other;
  const returns = `network ${membership.map.name} (${link}) was deleted; if it comes back, its peer ${hidden.name} is unreachable`;
  tools.warn(
    `${returns}: its address ${peer.address} is assigned to this host; "cpn leave ${link}" removes its stored state`,
  );
}
