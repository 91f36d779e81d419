import { HostUnread } from '../../core/errors/index.ts';
import { catalogue } from '../../core/problems/problem.ts';
import type { Change } from '../../core/reconcile/change.ts';
import { sameData } from '../../core/util/same-data.ts';
import type { Joined } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { save } from './apply.ts';
import type { ConfirmOptions } from './await-confirmation.ts';
import { applyKnownMap, applyNewMap, mayCutOff } from './confirm.ts';
import { isOnHost, removeTunnel, withoutDeletion } from './deleted-network.ts';
import { type Evaluation, evaluateNetwork } from './evaluate-network.ts';
import { syncPorts } from './open-ports.ts';
import { applyUpdate, type StateUpdate } from './state-update.ts';

/** Returns why a pass was incomplete: the host could not be observed. Null if it was complete. */
export function findUnread(evaluation: Evaluation | null | undefined): HostUnread | null {
  const unread = evaluation?.actual.unread;
  return evaluation && unread !== undefined ? new HostUnread(evaluation.state.interface, unread) : null;
}

export interface Pass {
  /** The evaluation before any change; null for a network that was taken down, and stays down. */
  readonly evaluation: Evaluation | null;
  readonly changes: readonly Change[];
  /** True if there was no update: the pass repaired changes of another program or user. */
  readonly isDrift: boolean;
}

export interface PassOptions extends ConfirmOptions {
  /** Called before drift is repaired. With false, the drift is left to a later pass. */
  readonly mayRepair?: (planned: Evaluation) => boolean;
}

/** Milliseconds to confirm a change that could cut the host off; else it is reverted. */
export const defaultConfirmMs = 20_000;

/**
 * Reconciles the host with the state and the update, and saves both. Without an update it observes
 * without the lock first; if nothing differs, it writes nothing and starts only the observers.
 *
 * With an update it takes the lock first, because an update is always saved. On a host that cannot
 * be observed, it applies only {@link planTightening}, and saves nothing.
 *
 * @returns null if the network is no longer joined
 */
export async function passNetwork(
  tools: Tools,
  link: string,
  update: StateUpdate,
  options: PassOptions,
): Promise<Pass | null> {
  // An update has a map only if the map differs: it must then be saved.
  if (update.map === null) {
    const known = await readJoined(tools, link);
    if (known === null) return null;
    if (sameData(applyUpdate(known, update), known)) {
      const looking = { acceptsUnread: true, silent: update.silent };
      const planned = known.enabled ? await evaluateNetwork(tools, known, looking) : null;
      const isLeft = known.deletion !== undefined && (await isOnHost(tools, known));
      const isSteady = planned === null ? !isLeft : planned.changes.length === 0 && planned.state === known;
      const isDone = isSteady ? !tools.store.damaged.has(link) : planned !== null && isPostponed(planned, options);
      if (isDone) return unchangedPass(planned);
    }
  }
  return tools.store.lock(() => passLocked(tools, link, update, options));
}

async function passLocked(tools: Tools, link: string, update: StateUpdate, options: PassOptions): Promise<Pass | null> {
  const stored = await readJoined(tools, link);
  if (stored === null) return null;
  const { isRepeated = false, removed = [] } = update;
  const confirming = { ...options, isMapRepeated: isRepeated, removed };
  const next = applyUpdate(stored, update);
  if (next.deletion !== undefined) return passDeleted(tools, stored, next);
  const known = withoutDeletion(stored);
  if (!known.enabled) return applyAndSave(tools, stored, next, null, confirming);
  // Steps first record their receipt in the state on disk, which must be of a network that is up.
  if (known !== stored) await tools.store.write(known);
  const planned = await evaluateNetwork(tools, next, { acceptsUnread: true, silent: update.silent });
  if (known !== stored) return resume(tools, await applyAndSave(tools, known, next, planned, confirming));
  if (sameData(next, known) && isPostponed(planned, options)) return unchangedPass(planned);
  return applyAndSave(tools, known, next, planned, confirming);
}

/** Ends a pass that brought up a network which its control plane has again. */
async function resume(tools: Tools, pass: Pass): Promise<Pass> {
  if (pass.evaluation === null) return pass;
  const { interface: link, membership } = pass.evaluation.state;
  tools.log.info({ interface: link, network: membership.map.name }, 'the control plane has the network again');
  const state = await readJoined(tools, link);
  if (state !== null) await syncPorts(tools, state, pass.evaluation.actual);
  return { ...pass, isDrift: false };
}

/** Runs a pass over a deleted network: removes everything from the host. */
async function passDeleted(tools: Tools, known: Joined, next: Joined): Promise<Pass> {
  if (known.deletion === undefined) {
    const facts = { code: 'network-deleted', interface: next.interface, network: next.membership.map.name };
    tools.log.warn(facts, catalogue['network-deleted'].title);
  }
  if (known.deletion === undefined || (await isOnHost(tools, next))) await removeTunnel(tools, next);
  else if (!sameData(next, known)) await tools.store.write(next);
  return { evaluation: null, changes: [], isDrift: false };
}

async function readJoined(
  tools: Pick<Tools, 'store' | 'evaluations' | 'savedConfigs'>,
  link: string,
): Promise<Joined | null> {
  const known = await tools.store.read(link);
  // A session that begins while the tunnel is down begins outside.
  if (!known?.enabled) tools.evaluations.forget(link);
  if (known !== null && isJoined(known)) return known;
  tools.evaluations.forget(link);
  tools.savedConfigs.forget(link);
  return null;
}

function isPostponed(planned: Evaluation, { mayRepair }: PassOptions): boolean {
  return planned.changes.length > 0 && mayRepair?.(planned) === false;
}

function unchangedPass(planned: Evaluation | null): Pass {
  return { evaluation: planned, changes: [], isDrift: true };
}

async function applyAndSave(
  tools: Tools,
  known: Joined,
  next: Joined,
  planned: Evaluation | null,
  options: PassOptions,
): Promise<Pass> {
  const isDrift = sameData(next, known);
  if (planned === null) {
    if (!isDrift) await tools.store.write(next);
    return { evaluation: null, changes: [], isDrift };
  }
  const isKnown = sameData(next.membership.map, known.membership.map);
  const state =
    isKnown || !mayCutOff(planned.changes)
      ? await applyKnownMap(tools, planned, known, options)
      : await applyNewMap(tools, planned, known, options);
  // The next pass that observes the host applies the rest, and saves it.
  if (planned.actual.unread === undefined) await save(tools, state, known, planned);
  return { evaluation: planned, changes: withoutUndone(planned, state), isDrift };
}

/** The changes without those of DNS settings that did not take effect. */
function withoutUndone({ steps, changes, state: { refusedDns } }: Evaluation, applied: Joined): readonly Change[] {
  const sets = steps.some((step) => step.do === 'set-dns');
  const isRefused = applied.refusedDns !== undefined && applied.refusedDns !== refusedDns;
  const isUndone = sets ? isRefused : applied.ownsDns === true;
  return isUndone ? changes.filter(({ kind }) => kind !== 'dns') : changes;
}
