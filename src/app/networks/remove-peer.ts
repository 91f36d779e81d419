import type { PeerService } from '../../api/service.ts';
import { expectCpnError, Refused } from '../../core/errors/index.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { findOwnSkipped } from '../../core/map/skipped-peers.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { accessOf, isTokenVoid, type PeerAccess } from '../access.ts';
import { isJoined } from '../select.ts';
import { withExtensions } from '../service-features.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds. A user waits for this, and leaving continues without it. */
const removalDeadline = 8_000;

/** Removes the peer from its network, or warns of what stays behind. */
export async function removeFromService(tools: Tools, state: State): Promise<boolean> {
  const problem = await tryRemoval(tools, state);
  if (problem !== null) tools.warn(describeStaying(state, problem));
  return problem === null;
}

export function describeStaying({ membership }: State, problem: string): string {
  if (membership === null) return problem;
  const { peer, map } = membership;
  return `${problem}; peer ${peer.id} stays in network ${map.name} until "cpn peer remove" takes it out`;
}

/** Removes the peer from its network. Returns why that failed, or null. */
export async function tryRemoval(tools: Tools, state: State): Promise<string | null> {
  if (!isJoined(state)) return describeUnfinished(state);
  const { peer, map, accessToken } = state.membership;
  const access = accessOf(state);
  if (access === null) return `${state.service.url} gave this host no token to remove itself with`;
  try {
    tools.progress(`taking peer ${peer.id} out of network ${map.name}`);
    const patience = { deadlineMs: removalDeadline, isLocked: true };
    const isGone = await withExtensions(tools, state, patience, async (service) => {
      const isRemoved = await service.removePeer(access.network, peer.id, access.token);
      return isRemoved || !(await isListed(service, access, state));
    });
    return isGone ? null : `${state.service.url} did not confirm the removal: it may not support the removal of peers`;
  } catch (error) {
    // The token of a removed peer is refused: an earlier, interrupted leave got this far.
    if (accessToken !== null && isTokenVoid(error)) return null;
    return expectCpnError(error).message;
  }
}

/** Without the reply to the enrolment, this host has neither id nor token to remove the peer. */
function describeUnfinished({ interface: link, service, enrollment, keyPair }: State): string {
  const peer = `a peer ${enrollment.name} with the public key ${keyPair.publicKey}`;
  return `the join of ${link} was not finished; ${peer} may stay in its network at ${service.url}: "cpn peer list" shows it, and "cpn peer remove" takes it out`;
}

/** True if the network still lists this host, or the service never did, which proves nothing. */
async function isListed(service: PeerService, access: PeerAccess, state: Joined): Promise<boolean> {
  const { membership } = state;
  try {
    const { map } = await service.readMap(access.network, access.token, null);
    if (findOwnPeer(membership.map, state)?.unlisted) return true;
    return map === null || (findOwnPeer(map, state) ?? findOwnSkipped(map, state)) !== undefined;
  } catch (error) {
    // The host's own token is void with the peer, and a deleted network accepts none.
    const isGone = error instanceof Refused && error.status === 404 && error.reasoned;
    if (membership.accessToken !== null ? isTokenVoid(error) : isGone) return false;
    throw error;
  }
}
