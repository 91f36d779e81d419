import type { PeerService } from '../api/service.ts';
import { CpnError, NotConverged, Refused } from '../core/errors.ts';
import { tableOf } from '../core/firewall.ts';
import { findOwnPeer } from '../core/own-peer.ts';
import { findOurRules } from '../core/plan-rules.ts';
import { formatRule } from '../core/rule.ts';
import { findOwnSkipped } from '../core/skipped-peers.ts';
import type { Joined, State } from '../store/state.ts';
import { type Access, accessOf } from './access.ts';
import { withExtensions } from './described.ts';
import { isJoined, refuseUnreadable, selectStates } from './select.ts';
import { takeBack, transferOwnership } from './take-back.ts';
import type { Tools } from './tools.ts';

/** What leaving a network did. */
export interface LeaveReport {
  readonly interface: string;
  /** Whether the control plane forgot this peer too; false where it could not be asked. */
  readonly removed: boolean;
}

/** Takes networks down; forgets nothing, and keeps them down until `bringUp`. */
export async function takeDown(tools: Tools, network?: string): Promise<string[]> {
  return tools.store.lock(async () => {
    const { states, unreadable } = await selectStates(tools.store, network);
    for (const state of states) {
      // Saved first: a pass between the two must not bring it up again.
      const disabled = { ...state, enabled: false };
      await tools.store.write(disabled);
      await takeBack(tools, disabled);
    }
    refuseUnreadable(unreadable);
    return states.map((state) => state.interface);
  });
}

/**
 * Leaves networks: takes the peer out of the network where the service can, takes everything back from the host, and
 * removes file and state. Also clears what an unfinished join left.
 */
export async function leaveNetworks(tools: Tools, network?: string): Promise<LeaveReport[]> {
  return tools.store.lock(async () => {
    const reports: LeaveReport[] = [];
    const { states, unreadable } = await selectStates(tools.store, network);
    for (const state of states) {
      const removed = await removeFromService(tools, state);
      const left = await takeBack(tools, { ...state, enabled: false });
      await forget(tools, left);
      reports.push({ interface: state.interface, removed });
    }
    refuseUnreadable(unreadable);
    return reports;
  });
}

/**
 * Makes sure that nothing of a left network is on the host any more.
 *
 * @throws NotConverged with what is still there
 */
export async function verifyLeft(tools: Tools, link: string): Promise<void> {
  const actual = await tools.host.observe({ link, firewall: true, sysctls: [], hosts: true });
  // The rules of a full tunnel are one network's, which may be another one.
  const others = (await tools.store.list()).states.filter((state) => state.interface !== link);
  const left = [
    ...(actual.link === null ? [] : [`interface ${link}`]),
    ...(actual.firewall === null ? [] : [`nft table ${tableOf(link)}`]),
    ...(others.length > 0 ? [] : findOurRules(actual.rules).map((rule) => `rule ${formatRule(rule)}`)),
    ...(actual.hosts?.block == null ? [] : [`block of ${link} in the hosts file`]),
    ...((await tools.store.readConfig(link)) === null ? [] : [tools.store.configPath(link)]),
    ...((await tools.store.read(link)) === null ? [] : [`state of ${link}`]),
  ];
  if (left.length > 0) throw new NotConverged(link, left);
}

/** Removes file and state; the folders that we made go with the last network. */
export async function forget(tools: Tools, state: State): Promise<void> {
  const folders = state.receipt.filter((entry) => entry.made === 'folder');
  const successor = (await tools.store.list()).states.find((other) => other.interface !== state.interface);
  if (successor) await transferOwnership(tools, successor, folders);
  await tools.store.forget(
    state.interface,
    folders.map((folder) => folder.path),
  );
}

/** Milliseconds. Somebody waits for this, and leaving goes on without it. */
const removalDeadline = 8_000;

/** Takes the peer out of its network; says what stays behind where that cannot be done. */
export async function removeFromService(tools: Tools, state: State): Promise<boolean> {
  if (!isJoined(state)) {
    tools.warn(describeUnfinished(state));
    return false;
  }
  const { peer, map, accessToken } = state.membership;
  const access = accessOf(state);
  const stays = `peer ${peer.id} stays in network ${map.name} until "cpn peer remove" takes it out`;
  if (access === null) {
    tools.warn(`${state.service.url} gave this host no token to remove itself with; ${stays}`);
    return false;
  }
  try {
    tools.progress(`taking peer ${peer.id} out of network ${map.name}`);
    const patience = { deadlineMs: removalDeadline, isLocked: true };
    const isGone = await withExtensions(tools, state, patience, async (service) => {
      const isRemoved = await service.removePeer(access.network, peer.id, access.token);
      return isRemoved || !(await isListed(service, access, state));
    });
    if (isGone) return true;
    tools.warn(`${state.service.url} does not know how to remove peers; ${stays}`);
    return false;
  } catch (error) {
    // The token of a peer that is gone is refused: an earlier, interrupted leave got this far.
    if (error instanceof Refused && error.status === 401 && accessToken !== null) return true;
    if (!(error instanceof CpnError)) throw error;
    tools.warn(`${error.message}; ${stays}`);
    return false;
  }
}

/** The reply to the enrolment never came, so that this host cannot remove the peer: it has neither its id nor a token. */
function describeUnfinished({ interface: link, service, enrollment, keyPair }: State): string {
  const peer = `a peer ${enrollment.name} with the public key ${keyPair.publicKey}`;
  return `the join of ${link} was not finished; ${peer} may stay in its network at ${service.url}: "cpn peer list" shows it, and "cpn peer remove" takes it out`;
}

/** Whether the network still has this host, which a service that never listed it does not tell. */
async function isListed(service: PeerService, access: Access, state: Joined): Promise<boolean> {
  const { membership } = state;
  if (findOwnPeer(membership.map, state)?.unlisted) return true;
  try {
    const { map } = await service.readMap(access.network, access.token, null);
    return map === null || (findOwnPeer(map, state) ?? findOwnSkipped(map, state)) !== undefined;
  } catch (error) {
    // Its own token is void with the peer, and a network that is not there has none.
    if (error instanceof Refused && error.status === (membership.accessToken === null ? 404 : 401)) return false;
    throw error;
  }
}
