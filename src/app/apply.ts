import type { Change } from '../core/change.ts';
import { CpnError, NotConverged, RulesNotLoaded } from '../core/errors.ts';
import { plan } from '../core/plan.ts';
import { isOpening, isPause, needsRules, planPause } from '../core/plan-forwarding.ts';
import { isNaming } from '../core/plan-hosts.ts';
import { record, strike } from '../core/receipt.ts';
import type { Step } from '../core/step.ts';
import type { Joined } from '../store/state.ts';
import { meanwhile } from './meanwhile.ts';
import { noteSaved } from './saved-config.ts';
import { questionOf, type Survey } from './survey.ts';
import { secondsNow, type Tools } from './tools.ts';

/**
 * Makes the host what a survey says: writes down what is about to be made, does the steps in order, and looks again. The
 * surveyed state itself is left to be saved by the caller, once it is known to be good: until then `known` stays on disk.
 * Where the packet rules do not load, all the rest is done, and nothing is forwarded: see {@link findUnloaded}.
 *
 * @returns the surveyed state with its receipt
 * @throws NotConverged when the host is not as planned afterwards
 */
export async function apply(tools: Tools, planned: Survey, known: Joined): Promise<Joined> {
  const { state, desired, steps, actual } = planned;
  if (steps.length === 0) return state;
  const receipt = record(known.receipt, steps, actual);
  if (receipt !== known.receipt) await tools.store.write({ ...known, receipt });
  const areLoaded = await applySteps(tools, planned);
  await reachMoved(tools, planned);
  const left = strike(receipt, steps);
  const applied: Joined = left === state.receipt ? state : { ...state, receipt: left };
  const [seen] = await meanwhile(tools, tools.host.observe(questionOf(applied)), () => tools.store.foresee(applied));
  const pending = plan(desired, seen, secondsNow(tools))
    .filter((step) => !isNaming(step))
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

/** Speaks to the peers that moved, where this host is behind NAT, which lets nothing in from the new endpoint before. */
async function reachMoved(tools: Tools, { state, desired, moved }: Survey): Promise<void> {
  const isReached = new Set(
    desired.config.peers
      .filter((peer) => peer.keepalive !== null && moved.has(peer.publicKey))
      .map(({ publicKey }) => publicKey),
  );
  const peers = state.membership.map.peers.filter((peer) => isReached.has(peer.publicKey));
  await Promise.all(peers.map((peer) => tools.host.nudge(peer.address)));
}

/**
 * Does the steps of a survey in order. Where the packet rules do not load, nothing is forwarded, and the rest is done: a host must
 * stay within reach. The notes tell why.
 *
 * @returns whether the packet rules load, where there was something to load
 */
export async function applySteps(tools: Tools, { state, desired, steps, actual }: Survey): Promise<boolean> {
  const { interface: link } = state;
  let areLoaded = true;
  for (const step of steps) {
    if (!areLoaded && isOpening(step)) continue;
    tools.log.debug({ interface: link, step: step.do, changes: step.changes }, 'applying a step');
    try {
      await applyStep(tools, step);
      if (step.do === 'set-firewall') await tools.store.amendNotes(link, { unloaded: null });
    } catch (error) {
      // In a container, where nothing of it can be written, the packet rules that come next are what counts.
      if (error instanceof CpnError && isPause(step)) continue;
      if (step.do !== 'set-firewall' || !(error instanceof CpnError)) throw error;
      areLoaded = false;
      for (const pause of planPause(desired, actual)) await tools.host.apply(pause);
      await tools.store.amendNotes(link, { unloaded: error.message });
    }
    tools.log.debug({ interface: link, step: step.do }, 'a step is done');
  }
  return areLoaded;
}

/** Of the changes of a plan those that were made, where the packet rules did not load. */
export function withoutRules(changes: readonly Change[], unloaded: RulesNotLoaded | null): readonly Change[] {
  return unloaded === null ? changes : changes.filter((change) => !needsRules(change));
}

/** What kept a network's packet rules from being loaded when they were last to be; null for nothing. */
export async function findUnloaded(tools: Tools, { desired }: Pick<Survey, 'desired'>): Promise<RulesNotLoaded | null> {
  const { link, firewall, isConnector } = desired;
  if (firewall === null) return null;
  const { unloaded } = await tools.store.readNotes(link);
  return unloaded === null ? null : new RulesNotLoaded(link, unloaded, isConnector);
}

/** Does one step; one that the tunnel works without may fail, which a person is told. Returns whether it was done. */
export async function applyStep(tools: Tools, step: Step): Promise<boolean> {
  try {
    await tools.host.apply(step);
    return true;
  } catch (error) {
    if (!isNaming(step) || !(error instanceof CpnError)) throw error;
    tools.warn(error.message);
    return false;
  }
}

/** Saves what the host was made: the state where it differs from `known`, and the wg-quick file where its text does. */
export async function save(tools: Tools, applied: Joined, known: Joined, { desired, config }: Survey): Promise<void> {
  if (applied !== known) await tools.store.write(applied);
  const present = await tools.store.readConfig(applied.interface);
  if (present === config) return;
  await tools.store.writeConfig(applied.interface, config);
  noteSaved(applied.interface, config, desired.config);
}
