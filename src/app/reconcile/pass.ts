import { HostUnread } from '../../core/errors/index.ts';
import type { Change } from '../../core/reconcile/change.ts';
import { sameData } from '../../core/util/same-data.ts';
import type { Joined } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { save } from './apply.ts';
import type { ConfirmOptions } from './await-confirmation.ts';
import { applyKnownMap, applyNewMap, mayCutOff } from './confirm.ts';
import { isOnHost, removeTunnel, withoutDeletion } from './deleted-network.ts';
import { forgetEvaluation } from './desire-network.ts';
import { type Evaluation, evaluateNetwork } from './evaluate-network.ts';
import { syncPorts } from './open-ports.ts';
import { parseSaved } from './saved-config.ts';
import { applyUpdate, type StateUpdate } from './state-update.ts';

/** Why a pass is not whole: the host could not be observed. Null for a whole one. */
export function findUnread(evaluation: Evaluation | null | undefined): HostUnread | null {
  const unread = evaluation?.actual.unread;
  return evaluation && unread !== undefined ? new HostUnread(evaluation.state.interface, unread) : null;
}

/** What a pass over a network saw and did. */
export interface Pass {
  /** What was seen before anything was changed; null of a network that was taken down, and is to stay so. */
  readonly evaluation: Evaluation | null;
  readonly changes: readonly Change[];
  /** Another program or user changed the host, and the pass repaired it: there was no update. */
  readonly isDrift: boolean;
}

export interface PassOptions extends ConfirmOptions {
  /** Asked before drift is repaired; false leaves it to a later pass. */
  readonly mayRepair?: (planned: Evaluation) => boolean;
}

/** Milliseconds within which a change that could cut the host off is confirmed, or taken back. */
export const defaultConfirmMs = 20_000;

/**
 * One pass over one network: makes the host what state and news say, and saves them. Without news it looks without the lock first;
 * where nothing differs it has written nothing and started only the observers. News are saved in any case, and so it looks under the
 * lock at once, and acts on that. Of a host that cannot be observed it changes what {@link planTightening} names, and saves nothing.
 *
 * @returns null when the network is not joined any more
 */
export async function passNetwork(
  tools: Tools,
  link: string,
  update: StateUpdate,
  options: PassOptions,
): Promise<Pass | null> {
  // An update has a map only where it is another one: then there is something to save.
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
  if (!known.enabled) return applyAndSave(tools, known, next, null, confirming);
  // What the steps make is recorded in the state on disk before: that must be one of a network that is up.
  if (known !== stored) await tools.store.write(known);
  const planned = await evaluateNetwork(tools, next, { acceptsUnread: true, silent: update.silent });
  if (known !== stored) return resume(tools, await applyAndSave(tools, known, next, planned, confirming));
  if (sameData(next, known) && isPostponed(planned, options)) return unchangedPass(planned);
  return applyAndSave(tools, known, next, planned, confirming);
}

/** The end of a pass that brought up a network which its control plane has again. */
async function resume(tools: Tools, pass: Pass): Promise<Pass> {
  if (pass.evaluation === null) return pass;
  const { interface: link, membership } = pass.evaluation.state;
  tools.log.info({ interface: link, network: membership.map.name }, 'the control plane has the network again');
  const state = await readJoined(tools, link);
  if (state !== null) await syncPorts(tools, state, pass.evaluation.actual);
  return { ...pass, isDrift: false };
}

/** A pass over a network that its control plane stated to be deleted: nothing of it stays on the host. */
async function passDeleted(tools: Tools, known: Joined, next: Joined): Promise<Pass> {
  if (known.deletion === undefined) {
    const { name } = next.membership.map;
    tools.log.warn({ interface: next.interface, network: name }, 'the network was deleted; its tunnel is taken down');
  }
  if (known.deletion === undefined || (await isOnHost(tools, next))) await removeTunnel(tools, next);
  else if (!sameData(next, known)) await tools.store.write(next);
  return { evaluation: null, changes: [], isDrift: false };
}

async function readJoined(tools: Pick<Tools, 'store'>, link: string): Promise<Joined | null> {
  const known = await tools.store.read(link);
  // A session that begins while the tunnel is down begins outside.
  if (!known?.enabled) forgetEvaluation(link);
  if (known !== null && isJoined(known)) return known;
  forgetEvaluation(link);
  parseSaved(link, null);
  return null;
}

/** True of drift that is left to a later pass. */
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
  // The next pass that observes the host applies the rest, and saves what it applied.
  if (planned.actual.unread === undefined) await save(tools, state, known, planned);
  return { evaluation: planned, changes: planned.changes, isDrift };
}
