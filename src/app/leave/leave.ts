import type { PeerService } from '../../api/service.ts';
import { type CpnError, expectCpnError, NotConverged, NotJoined, Refused } from '../../core/errors/index.ts';
import { tableOf } from '../../core/forward/nft-rules.ts';
import { formatRule } from '../../core/host-state/policy-rule.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { findOwnSkipped } from '../../core/map/skipped-peers.ts';
import { findOurRules } from '../../core/routing/tunnel-rules.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { accessOf, isTokenVoid, type PeerAccess } from '../access.ts';
import { isJoined, type SelectedNetworks, selectMeant } from '../select.ts';
import { withExtensions } from '../service-features.ts';
import type { Tools } from '../tools.ts';
import { cleanUp, transferOwnership } from './cleanup.ts';
import { describeFormer, listFormer, recordFormer, selectFormer } from './former-networks.ts';

/** What leaving a network did. */
export interface LeaveReport {
  readonly interface: string;
  /** Whether the control plane forgot this peer too; false where it could not be asked. */
  readonly removed: boolean;
  /** Whether identity and token are kept, so that this host can still remove or replace the peer. */
  readonly former: boolean;
}

/** Takes networks down; forgets nothing, and keeps them down until `bringUp`. @throws the first failure, once all had their turn */
export async function takeDown(tools: Tools, network?: string, all = false): Promise<string[]> {
  return tools.store.lock(async () => {
    const { states, unreadable } = await selectMeant(tools.store, network, all);
    return forEachState(tools, { states, unreadable }, async (state) => {
      // Saved first: a pass between the two must not bring it up again.
      const { deletion } = state;
      const disabled = { ...state, enabled: false, ...(deletion && { deletion: { ...deletion, resumes: false } }) };
      await tools.store.write(disabled);
      await cleanUp(tools, disabled);
      return state.interface;
    });
  });
}

/** The failure of one network is its own: the others have their turn before it is thrown. */
async function forEachState<Result>(
  tools: Tools,
  { states, unreadable }: SelectedNetworks,
  work: (state: State) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures: CpnError[] = [];
  for (const { interface: link } of states) {
    try {
      // One that had its turn may have handed over to this one what its receipt names.
      const state = await tools.store.read(link);
      if (state !== null) results.push(await work(state));
    } catch (error) {
      failures.push(expectCpnError(error));
    }
  }
  const [failure, ...others] = [...failures, ...unreadable.map(({ error }) => error)];
  for (const { message } of others) tools.warn(message);
  if (failure) throw failure;
  return results;
}

/**
 * The networks to leave: the only one, or with `all` each, where nothing is named. None where `network` names one that was left already.
 *
 * @throws WrongUsage as {@link selectMeant}
 * @throws NotJoined where it names neither
 */
export async function selectLeaving(
  tools: Tools,
  network: string | undefined,
  all: boolean,
): Promise<SelectedNetworks> {
  try {
    return await selectMeant(tools.store, network, all);
  } catch (error) {
    if (!(error instanceof NotJoined) || selectFormer(await listFormer(tools), network).length === 0) throw error;
    return { states: [], unreadable: [] };
  }
}

/**
 * Leaves networks: takes the peer out of the network where the service can, takes everything back from the host, and
 * removes file and state. Also clears what an unfinished join left.
 *
 * @param links the interfaces; all by default. A name would be read again here, and its owner may have changed it since it was confirmed.
 * @param keepsPeer leaves the peer in its network, for another host that has its identity too, and keeps nothing of it here
 */
export async function leaveNetworks(
  tools: Tools,
  links?: readonly string[],
  keepsPeer = false,
): Promise<LeaveReport[]> {
  return tools.store.lock(async () => {
    const { states, unreadable } = await tools.store.list();
    const isLeaving = ({ interface: link }: { readonly interface: string }) => links?.includes(link) ?? true;
    const leaving = { states: states.filter(isLeaving), unreadable: unreadable.filter(isLeaving) };
    return forEachState(tools, leaving, async (state) => {
      const { removed, former } = keepsPeer ? stays : await leaveService(tools, state);
      const left = await cleanUp(tools, { ...state, enabled: false });
      await deleteState(tools, left);
      return { interface: state.interface, removed, former };
    });
  });
}

const stays = { removed: false, former: false } as const;

/**
 * Makes sure that nothing of a left network is on the host any more, but for what {@link recordFormer} kept.
 *
 * @returns what was looked for, and is not there
 * @throws NotConverged with what is still there
 */
export async function verifyLeft(tools: Tools, link: string): Promise<readonly string[]> {
  const actual = await tools.host.observe({ link, firewall: true, sysctls: [], hosts: true });
  // The rules of a full tunnel are one network's, which may be another one.
  const others = (await tools.store.list()).states.filter((state) => state.interface !== link);
  const rules = others.length > 0 ? [] : findOurRules(actual.rules).map((rule) => `rule ${formatRule(rule)}`);
  const searched: readonly (readonly [what: string, isThere: boolean])[] = [
    [`interface ${link}`, actual.link !== null],
    [`nft table ${tableOf(link)}`, actual.firewall !== null],
    [`block of ${link} in the hosts file`, actual.hosts?.block != null],
    [tools.store.configPath(link), (await tools.store.readConfig(link)) !== null],
    [`state of ${link}`, (await tools.store.read(link)) !== null],
  ];
  const left = [...searched.flatMap(([what, isThere]) => (isThere ? what : [])), ...rules];
  if (left.length > 0) throw new NotConverged(link, left);
  return [...searched.map(([what]) => what), ...(others.length > 0 ? [] : ['policy rule of cpn'])];
}

/** Removes file and state; the folders that we made go with the last network. */
export async function deleteState(tools: Tools, state: State): Promise<void> {
  const folders = state.receipt.filter((entry) => entry.made === 'folder');
  const successor = (await tools.store.list()).states.find((other) => other.interface !== state.interface);
  if (successor) await transferOwnership(tools, successor, folders);
  await tools.store.forget(
    state.interface,
    folders.map((folder) => folder.path),
  );
}

/** Milliseconds. A user waits for this, and leaving continues without it. */
const removalDeadline = 8_000;

/** Takes the peer out of its network; where that cannot be done now, keeps what it takes to do it later. Says what stays behind. */
async function leaveService(tools: Tools, state: State): Promise<Omit<LeaveReport, 'interface'>> {
  const problem = await tryRemoval(tools, state);
  if (problem === null) return { removed: true, former: false };
  const kept = isJoined(state) ? await recordFormer(tools, state) : null;
  tools.warn(kept === null ? describeStaying(state, problem) : `${problem}; ${describeFormer(kept)}`);
  return { removed: false, former: kept !== null };
}

/** Takes the peer out of its network; says what stays behind where that cannot be done. */
export async function removeFromService(tools: Tools, state: State): Promise<boolean> {
  const problem = await tryRemoval(tools, state);
  if (problem !== null) tools.warn(describeStaying(state, problem));
  return problem === null;
}

function describeStaying({ membership }: State, problem: string): string {
  if (membership === null) return problem;
  const { peer, map } = membership;
  return `${problem}; peer ${peer.id} stays in network ${map.name} until "cpn peer remove" takes it out`;
}

/** Takes the peer out of its network. Returns what kept that from being done; null where it is done. */
async function tryRemoval(tools: Tools, state: State): Promise<string | null> {
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
    return isGone ? null : `${state.service.url} confirms no removal: perhaps it does not know how to remove peers`;
  } catch (error) {
    // The token of a peer that is gone is refused: an earlier, interrupted leave got this far.
    if (accessToken !== null && isTokenVoid(error)) return null;
    return expectCpnError(error).message;
  }
}

/** The reply to the enrolment never came, so that this host cannot remove the peer: it has neither its id nor a token. */
function describeUnfinished({ interface: link, service, enrollment, keyPair }: State): string {
  const peer = `a peer ${enrollment.name} with the public key ${keyPair.publicKey}`;
  return `the join of ${link} was not finished; ${peer} may stay in its network at ${service.url}: "cpn peer list" shows it, and "cpn peer remove" takes it out`;
}

/** Whether the network still has this host, which a service that never listed it does not tell. */
async function isListed(service: PeerService, access: PeerAccess, state: Joined): Promise<boolean> {
  const { membership } = state;
  try {
    const { map } = await service.readMap(access.network, access.token, null);
    if (findOwnPeer(membership.map, state)?.unlisted) return true;
    return map === null || (findOwnPeer(map, state) ?? findOwnSkipped(map, state)) !== undefined;
  } catch (error) {
    // Its own token is void with the peer, and a network that is not there has none.
    const isGone = error instanceof Refused && error.status === 404 && error.reasoned;
    if (membership.accessToken !== null ? isTokenVoid(error) : isGone) return false;
    throw error;
  }
}
