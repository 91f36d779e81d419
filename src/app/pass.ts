import type { Change } from '../core/change.ts';
import type { Joined } from '../store/state.ts';
import { apply, save } from './apply.ts';
import { applyConfirmed, areRisky, type Confirming } from './confirm.ts';
import { type News, withNews } from './news.ts';
import { isJoined } from './select.ts';
import { type Survey, survey } from './survey.ts';
import type { Tools } from './tools.ts';

/** What a pass over a network saw and did. */
export interface Pass {
  /** What was seen before anything was changed; null of a network that was taken down, and is to stay so. */
  readonly survey: Survey | null;
  readonly changes: readonly Change[];
  /** The changes repaired what somebody else did to the host: there were no news. */
  readonly isDrift: boolean;
}

export interface PassOptions extends Confirming {
  /** Asked before drift is repaired; false leaves it to a later pass. */
  readonly mayRepair?: (drift: readonly Change[]) => boolean;
}

/** Milliseconds within which a change that could cut the host off is confirmed, or taken back. */
export const usualConfirmation = 20_000;

/**
 * One pass over one network: makes the host what state and news say, and saves them. Without news it looks without the lock first;
 * where nothing differs it has written nothing and started only the observers. News are saved in any case, and so it looks under the
 * lock at once, and acts on that.
 *
 * @returns null when the network is not joined any more
 */
export async function passNetwork(tools: Tools, link: string, news: News, options: PassOptions): Promise<Pass | null> {
  const before = await reckon(tools, link, news);
  if (before === null) return null;
  const { known, next } = before;
  if (next === known) {
    const planned = await look(tools, before);
    const changes = planned?.changes ?? [];
    const isSteady = changes.length === 0 && !tools.store.damaged.has(link);
    const isPostponed = changes.length > 0 && options.mayRepair?.(changes) === false;
    if (isSteady || isPostponed) return { survey: planned, changes: [], isDrift: true };
  }
  return tools.store.lock(async () => {
    const reckoned = await reckon(tools, link, news, before);
    return reckoned && settle(tools, reckoned, await look(tools, reckoned), options);
  });
}

/** What is on disk, and what it becomes with the news. */
interface Reckoned {
  readonly known: Joined;
  readonly next: Joined;
}

/** @param before an earlier reckoning with the same news, which holds while the disk says the same */
async function reckon(tools: Tools, link: string, news: News, before?: Reckoned): Promise<Reckoned | null> {
  const known = await tools.store.read(link);
  if (known === null || !isJoined(known)) return null;
  return { known, next: before?.known === known ? before.next : withNews(known, news) };
}

/** What that means for the host; null where the network is to stay down. */
async function look(tools: Tools, { next }: Reckoned): Promise<Survey | null> {
  return next.enabled ? survey(tools, next) : null;
}

async function settle(
  tools: Tools,
  { known, next }: Reckoned,
  planned: Survey | null,
  options: PassOptions,
): Promise<Pass> {
  const isDrift = next === known;
  if (planned === null) {
    if (!isDrift) await tools.store.write(next);
    return { survey: null, changes: [], isDrift };
  }
  const isKnown = next.membership.map === known.membership.map;
  const state =
    isKnown || !areRisky(planned.changes)
      ? await apply(tools, planned, known)
      : await applyConfirmed(tools, planned, known, options);
  await save(tools, state, known, planned);
  return { survey: planned, changes: planned.changes, isDrift };
}
