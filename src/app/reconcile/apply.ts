import type { PublicKey } from '../../core/crypto/keys.ts';
import { CpnError, expectCpnError, NotConverged, RulesNotLoaded } from '../../core/errors/index.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import type { Change } from '../../core/reconcile/change.ts';
import { withoutUnfiltered } from '../../core/reconcile/desired.ts';
import { plan } from '../../core/reconcile/plan.ts';
import { changesOnlyPeers, planDevice } from '../../core/reconcile/plan-device.ts';
import {
  enablesForwarding,
  needsRules,
  pausesForwarding,
  planForwardingPause,
} from '../../core/reconcile/plan-forwarding.ts';
import { dropReverted, recordSteps } from '../../core/reconcile/record-receipt.ts';
import { isNamesStep, type SetDns, type Step } from '../../core/reconcile/step.ts';
import type { Joined } from '../../store/state/state.ts';
import { secondsNow, type Tools } from '../tools.ts';
import type { Evaluation } from './evaluate-network.ts';
import { applyDns, type DnsOutcome } from './names/apply-dns.ts';
import { observeOptionsFor } from './observe-options.ts';
import { refuseTakenPort } from './port-conflict.ts';

/**
 * Applies an evaluation to the host: saves the receipt, applies the steps in order, observes again.
 * The caller saves the evaluated state after its confirmation; until then `known` stays on disk. If
 * the packet rules do not load, nothing is forwarded: see {@link findUnloaded}.
 *
 * @returns the evaluated state with its receipt
 * @throws NotConverged if the host is not as planned afterwards
 * @throws PortTaken before anything is created
 */
export async function applyEvaluation(tools: Tools, planned: Evaluation, known: Joined): Promise<Joined> {
  const { state, desired, steps, actual } = planned;
  if (steps.length === 0) return state;
  await refuseTakenPort(tools, planned);
  const receipt = recordSteps(known.receipt, steps, actual);
  const ownsDns = steps.some((step) => step.do === 'set-dns' || step.do === 'revert-dns') && !known.ownsDns;
  if (receipt !== known.receipt || ownsDns) {
    await tools.store.write({ ...known, receipt, ...(ownsDns && { ownsDns }) });
  }
  const { areLoaded, ...dns } = await applySteps(tools, planned);
  await reachMoved(tools, planned);
  const left = dropReverted(receipt, steps);
  const noted = noteDns(state, steps, dns);
  const applied: Joined = left === state.receipt ? noted : { ...noted, receipt: left };
  const observed = await observeApplied(tools, planned, applied);
  const wanted = areLoaded ? desired : withoutUnfiltered(desired);
  const pending = plan(wanted, observed, secondsNow(tools))
    .filter((step) => !isNamesStep(step))
    .flatMap((step) => step.changes)
    .filter((change) => areLoaded || !needsRules(change));
  if (pending.length > 0) {
    throw new NotConverged(
      state.interface,
      pending.map(({ action, kind, target }) => `${action} ${kind} ${target}`),
    );
  }
  return applied;
}

/** What the steps did to the DNS settings. */
interface DnsResult {
  /** True if settings stay that were to be removed, or if the removal was not read. */
  readonly dnsStays: boolean;
  /** Absent without a step to set them, and if that step failed. */
  readonly dnsOutcome?: DnsOutcome;
}

function noteDns(state: Joined, steps: readonly Step[], { dnsStays, dnsOutcome }: DnsResult): Joined {
  const sets = steps.some((step) => step.do === 'set-dns');
  if (!sets && !steps.some((step) => step.do === 'revert-dns')) return state;
  const { ownsDns: before, refusedDns: formerly, ...rest } = state;
  const { refused = formerly ?? null, isReverted = false } = dnsOutcome ?? {};
  // With settings that were never read, the resolver may still use the former ones.
  const isUnread = dnsOutcome !== undefined && refused !== null && !isReverted;
  const ownsDns = dnsStays || (sets && !isReverted && (!isUnread || before === true));
  return { ...rest, ...(ownsDns && { ownsDns }), ...(refused && { refusedDns: refused }) };
}

/** Observes the host after the steps, without what no step could change: that takes longest. */
function observeApplied(tools: Pick<Tools, 'host'>, { steps, actual }: Evaluation, applied: Joined): Promise<Actual> {
  const previous = changesOnlyPeers(steps) ? actual : null;
  return tools.host.observe({ ...observeOptionsFor(applied), previous });
}

/** Behind NAT, sends to peers that moved: the NAT accepts no packet from a new endpoint before. */
async function reachMoved(tools: Pick<Tools, 'host'>, { state, desired, moved }: Evaluation): Promise<void> {
  const isReached = new Set(
    desired.config.peers
      .filter((peer) => peer.keepalive !== null && moved.has(peer.publicKey))
      .map(({ publicKey }) => publicKey),
  );
  const peers = state.membership.map.peers.filter((peer) => isReached.has(peer.publicKey));
  await Promise.all(peers.map((peer) => tools.host.triggerHandshake(peer.address)));
}

/**
 * Applies steps in order. If the packet rules do not load, the other steps still apply, because a
 * host must stay reachable; nothing is forwarded, and the tunnel of a closed network carries
 * nothing. The notes have the reason.
 *
 * @returns also whether the packet rules load, if there were any to load
 */
export async function applySteps(
  tools: Tools,
  { state, desired, steps, actual }: Evaluation,
): Promise<DnsResult & { readonly areLoaded: boolean }> {
  const { interface: link } = state;
  let [areLoaded, dnsStays] = [true, false];
  let dnsOutcome: DnsOutcome | undefined;
  const left = [...steps];
  for (let step = left.shift(); step !== undefined; step = left.shift()) {
    if (!areLoaded && enablesForwarding(step)) continue;
    tools.log.debug({ interface: link, step: step.do, changes: step.changes }, 'applying a step');
    try {
      if (step.do === 'set-dns') dnsOutcome = await tryDns(tools, state, step);
      else if (!(await applyStep(tools, step)) && step.do === 'revert-dns') dnsStays = true;
      if (step.do === 'set-firewall') {
        await tools.store.amendNotes(link, { unloaded: null });
        for (const { address, local } of desired.keptSessions) {
          tools.log.warn({ interface: link, client: address, address: local }, 'an SSH session is kept until it ends');
        }
      }
    } catch (error) {
      // In a container that cannot write sysctls, the packet rules that follow are sufficient.
      if (error instanceof CpnError && pausesForwarding(step)) continue;
      if (step.do !== 'set-firewall' || !(error instanceof CpnError)) throw error;
      areLoaded = false;
      for (const pause of planForwardingPause(desired, actual)) await tools.host.apply(pause);
      if (desired.firewall?.access !== undefined) {
        const moment = { now: secondsNow(tools), moved: new Set<PublicKey>() };
        const others = left.filter((each) => each.do !== 'configure-device');
        left.splice(0, left.length, ...others, ...planDevice(withoutUnfiltered(desired), actual, moment));
      }
      await tools.store.amendNotes(link, { unloaded: error.message });
    }
    tools.log.debug({ interface: link, step: step.do }, 'a step is done');
  }
  return { areLoaded, dnsStays, ...(dnsOutcome && { dnsOutcome }) };
}

/** As {@link applyDns}; `undefined`, with a warning, if the step failed. */
async function tryDns(tools: Tools, state: Joined, step: Step & SetDns): Promise<DnsOutcome | undefined> {
  try {
    return await applyDns(tools, state, step);
  } catch (error) {
    tools.warn(expectCpnError(error).message);
    return undefined;
  }
}

/** Returns the changes of a plan that were made although the packet rules did not load. */
export function withoutRules(changes: readonly Change[], unloaded: RulesNotLoaded | null): readonly Change[] {
  return unloaded === null ? changes : changes.filter((change) => !needsRules(change));
}

/** Returns why a network's packet rules did not load at the last attempt; null if they did. */
export async function findUnloaded(
  tools: Pick<Tools, 'store'>,
  { desired }: Pick<Evaluation, 'desired'>,
): Promise<RulesNotLoaded | null> {
  const { link, firewall, isConnector } = desired;
  if (firewall === null) return null;
  const { unloaded } = await tools.store.readNotes(link);
  const isClosed = firewall.access !== undefined;
  return unloaded === null ? null : new RulesNotLoaded(link, unloaded, { isClosed, isConnector });
}

/** Applies one step. Returns false, with a warning, if an optional step failed. */
export async function applyStep(tools: Pick<Tools, 'host' | 'warn'>, step: Step): Promise<boolean> {
  try {
    await tools.host.apply(step);
    return true;
  } catch (error) {
    if (!isNamesStep(step) || !(error instanceof CpnError)) throw error;
    tools.warn(error.message);
    return false;
  }
}

/** Saves the state if it differs from `known`, and the wg-quick file if its text differs. */
export async function save(
  tools: Pick<Tools, 'store' | 'savedConfigs'>,
  applied: Joined,
  known: Joined,
  { desired, config }: Evaluation,
): Promise<void> {
  if (applied !== known) await tools.store.write(applied);
  const present = await tools.store.readConfig(applied.interface);
  if (present === config) return;
  await tools.store.writeConfig(applied.interface, config);
  tools.savedConfigs.keep(applied.interface, config, desired.savedConfig);
}
