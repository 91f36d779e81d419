import type { PublicKey } from '../../core/crypto/keys.ts';
import { Interrupted, NotConfirmed } from '../../core/errors/index.ts';
import { rejectsIpv6 } from '../../core/forward/own-table.ts';
import type { Actual, Device } from '../../core/host-state/actual.ts';
import { differsInRulesAlone, identifyMap, withoutRemoved, withRulesOf } from '../../core/map/map-validation.ts';
import type { Change } from '../../core/reconcile/change.ts';
import { type Desired, restoreConfig, withoutIpv6Rejection } from '../../core/reconcile/desired.ts';
import { findMeshLoss, presentTunnel } from '../../core/reconcile/mesh-loss.ts';
import { findMovedPeers } from '../../core/reconcile/moved-peers.ts';
import { plan } from '../../core/reconcile/plan.ts';
import { planRestoration } from '../../core/reconcile/plan-tightening.ts';
import type { Joined } from '../../store/state/state.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { applyEvaluation } from './apply.ts';
import {
  type ConfirmOptions,
  canBeConfirmed,
  isConfirmed,
  isLossConfirmed,
  isMapReceived,
} from './await-confirmation.ts';
import { findConfirmingPeers } from './confirming-peers.ts';
import { type Evaluation, evaluateNetwork, withServiceTime } from './evaluate-network.ts';

/**
 * True if changes may cut the host off: all changes except new peers and names, for which
 * {@link applyDns} has its own check.
 */
export function mayCutOff(changes: readonly Change[]): boolean {
  return !changes.every(
    ({ action, kind }) =>
      kind === 'file' || kind === 'hosts' || kind === 'dns' || (kind === 'peer' && action === 'add'),
  );
}

/** Describes which part of the network an evaluation takes away, or null. */
function findLoss(
  { saved, desired, actual, listed, state, expired }: Evaluation,
  known: Joined,
  { isMapRepeated = false, removed = [] }: Pick<ConfirmOptions, 'isMapRepeated' | 'removed'>,
): string | null {
  const before = saved ?? presentTunnel(actual, desired.config.address);
  // An expired peer is no longer in the network, even if the map lists it.
  const gone = [...removed, ...expired];
  const newest = withoutRemoved(state.membership.map, expired).peers;
  // A map without this host is applied only once the service sent it twice.
  const listing = {
    known: withoutRemoved(known.membership.map, gone).peers,
    newest: listed ? newest : [],
    isBelieved: isMapRepeated || !listed,
  };
  return before && findMeshLoss(before, desired.config, listing);
}

/** True if a full tunnel starts to reject IPv6: after an upgrade, an option or a reboot. */
function beginsIpv6Rejection({ desired, actual }: Evaluation): boolean {
  return (desired.ipv6?.exceptions ?? null) !== null && !rejectsIpv6(actual);
}

/** For a known map, or a map that was sent twice: peers that it does not list count as removed. */
const believed = { isMapRepeated: true };

/**
 * Applies an evaluation of the known map, or of a user's request: by {@link applyTentatively} if it
 * takes away the network itself, for any reason, or starts to reject IPv6 outside a full tunnel.
 *
 * @throws NotConfirmed if it was reverted, and all errors of {@link applyEvaluation}
 */
export async function applyKnownMap(
  tools: Tools,
  planned: Evaluation,
  known: Joined,
  confirming: ConfirmOptions,
): Promise<Joined> {
  const loss = findLoss(planned, known, believed);
  if (loss === null && !beginsIpv6Rejection(planned)) return applyEvaluation(tools, planned, known);
  const facts = { interface: known.interface, loss };
  if (!(await canBeConfirmed(tools, planned))) {
    // Without an answer before the change, silence after it proves nothing.
    tools.log.warn(facts, 'a change may cut this host off, and nothing can confirm it');
    return applyEvaluation(tools, planned, known);
  }
  const { state, isKept } = await applyTentatively(tools, planned, known, confirming);
  if (isKept) return state;
  const { revision } = known.membership.map;
  throw new NotConfirmed(known.interface, { revision, loss, again: 'later', withinMs: confirming.withinMs });
}

/**
 * Applies an evaluation of an untested map, as {@link applyTentatively} does, and records a refused
 * map.
 *
 * @throws NotConfirmed if it was reverted, and all errors of {@link applyEvaluation}, after the
 *   change was reverted
 */
export async function applyNewMap(
  tools: Tools,
  planned: Evaluation,
  known: Joined,
  confirming: ConfirmOptions,
): Promise<Joined> {
  const { map } = planned.state.membership;
  const loss = findLoss(planned, known, confirming);
  // A rollback keeps newer rules, so there is nothing to confirm. A revocation that follows would
  // wait for it.
  const isRulesAlone = differsInRulesAlone(known.membership.map, map) && loss === null;
  if (isRulesAlone && !confirming.needsMap && !beginsIpv6Rejection(planned))
    return applyEvaluation(tools, planned, known);
  const { state, isKept } = await applyTentatively(tools, planned, known, confirming);
  if (isKept) return state;
  // If the service intends to remove these peers, it sends the same map again.
  const again = loss !== null && findLoss(planned, known, believed) === null ? 'repeated' : 'changed';
  const attempt = { revision: map.revision, loss, withinMs: confirming.withinMs };
  // The next process tries an interrupted change again.
  if (confirming.signal?.aborted) throw new NotConfirmed(known.interface, { ...attempt, again: 'stopped' });
  if (again === 'repeated') await tools.store.amendNotes(known.interface, { held: { since: tools.uptime() } });
  else await tools.store.write({ ...state, refused: identifyMap(map) });
  throw new NotConfirmed(known.interface, { ...attempt, again });
}

/**
 * Applies an evaluation, and keeps it only if the control plane, or a peer that answered before,
 * still answers. Otherwise it restores the state of `known`.
 *
 * Only retained peers with a fresh handshake confirm a change that takes away the network itself.
 * The control plane is reached outside the tunnel, and would confirm the loss of the whole network.
 * It counts only if there is no such peer.
 *
 * @returns the present state of the host
 * @throws Interrupted if the change was reverted after a signal
 * @throws all errors of {@link applyEvaluation}, after the change was reverted
 */
export function applyTentatively(
  tools: Tools,
  planned: Evaluation,
  known: Joined,
  confirming: ConfirmOptions,
): Promise<ConfirmationResult> {
  return tools.deferSignals(async (interrupted) => {
    const signal = AbortSignal.any([interrupted, ...(confirming.signal ? [confirming.signal] : [])]);
    const tried = await applyAndConfirm(tools, planned, known, { ...confirming, signal });
    if (!tried.isKept) throwIfInterrupted(signal);
    return tried;
  });
}

/** Throws if a signal arrived and a change must be reverted. */
export function throwIfInterrupted(signal: AbortSignal | undefined): void {
  if (isInterrupted(signal)) throw signal?.reason;
}

export function isInterrupted(signal: AbortSignal | undefined): boolean {
  return signal?.reason instanceof Interrupted;
}

interface ConfirmationResult {
  readonly state: Joined;
  readonly isKept: boolean;
}

async function applyAndConfirm(
  tools: Tools,
  planned: Evaluation,
  known: Joined,
  confirming: ConfirmOptions,
): Promise<ConfirmationResult> {
  const peers = findConfirmingPeers(planned, secondsNow(tools));
  const loss = findLoss(planned, known, confirming);
  let applied: Joined;
  try {
    applied = await applyEvaluation(tools, planned, known);
  } catch (error) {
    await rollBack(tools, planned, known).catch((failure: Error) => {
      const facts = { interface: known.interface, error: failure.message };
      tools.log.warn(facts, 'a change failed, and its rollback failed too');
    });
    throw error;
  }
  const { needsMap = false } = confirming;
  const isReached =
    loss !== null && peers.length > 0
      ? await isLossConfirmed(tools, planned, peers, confirming)
      : needsMap || (await isConfirmed(tools, planned.state, { peers, includesApi: true }, confirming));
  const isKept = isReached && (!needsMap || (await isMapReceived(tools, planned.state, confirming)));
  if (isKept) return { state: applied, isKept };
  const state = await rollBack(tools, planned, known);
  // A failed handshake ended their sessions. Without a new one they cannot confirm the next change.
  if (loss !== null) for (const { address } of peers) await tools.host.triggerHandshake(address);
  return { state, isKept };
}

/**
 * Restores the host's previous state. The receipt on disk may have grown meanwhile, and stays. If
 * drift is the cause, the known map leads to the same change again, so the host is restored from
 * the wg-quick file. The same applies to IPv6 that was not rejected before.
 *
 * The newer map's access rules stay: a host that cannot confirm them must not hold back a
 * revocation.
 */
async function rollBack(tools: Tools, evaluated: Evaluation, known: Joined): Promise<Joined> {
  const { saved, desired: tried, actual } = evaluated;
  const { receipt } = (await tools.store.read(known.interface)) ?? known;
  const { membership } = known;
  const map = withRulesOf(membership.map, evaluated.state.membership.map);
  const before: Joined = { ...known, receipt, membership: { ...membership, map } };
  if (actual.unread !== undefined && actual.device !== null) {
    await restorePeers(tools, tried, actual.device, actual);
    return before;
  }
  const planned = await evaluateNetwork(tools, before, { applied: tried.config });
  const isDrift = saved !== null && findLoss(planned, before, believed) !== null;
  const isRejecting = beginsIpv6Rejection(evaluated);
  if (!isDrift && !isRejecting) return applyEvaluation(tools, planned, before);
  const restored = isDrift ? restoreConfig(planned.desired, saved) : planned.desired;
  const desired = isRejecting ? withoutIpv6Rejection(restored) : restored;
  const moved = findMovedPeers(desired.config, tried.config, { map: before.membership.map, resolved: before.resolved });
  return applyEvaluation(
    tools,
    {
      ...planned,
      desired,
      moved,
      steps: withServiceTime(plan(desired, planned.actual, secondsNow(tools), moved), planned.serviceTime),
    },
    before,
  );
}

/** Reverts the changes on a host that cannot be observed: only WireGuard's peers. */
async function restorePeers(
  tools: Pick<Tools, 'host' | 'now'>,
  desired: Desired,
  before: Device,
  observed: Actual,
): Promise<void> {
  const actual = { ...observed, device: await tools.host.device(desired.link) };
  const moment = { now: secondsNow(tools), moved: new Set<PublicKey>() };
  for (const step of planRestoration(desired, before, actual, moment)) await tools.host.apply(step);
}
