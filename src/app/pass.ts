import type { Change } from '../core/change.ts';
import type { Joined } from '../store/state.ts';
import { save } from './apply.ts';
import { applyConfirmed, applyKnown, areRisky, type Confirming } from './confirm.ts';
import { meanwhile } from './meanwhile.ts';
import { type News, withNews } from './news.ts';
import { isJoined } from './select.ts';
import { questionOf, type Survey, survey } from './survey.ts';
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
  // A map is told only where it is another one: then there is something to save.
  if (news.map === null) {
    const known = await readJoined(tools, link);
    if (known === null) return null;
    if (withNews(known, news) === known) {
      const planned = known.enabled ? await survey(tools, known) : null;
      const isSteady = planned === null || planned.changes.length === 0;
      if (isSteady ? !tools.store.damaged.has(link) : isPostponed(planned, options)) return withoutChange(planned);
    }
  }
  return tools.store.lock(() => passLocked(tools, link, news, options));
}

async function passLocked(tools: Tools, link: string, news: News, options: PassOptions): Promise<Pass | null> {
  const known = await readJoined(tools, link);
  if (known === null) return null;
  const confirming = { ...options, isSaidTwice: news.isSaidTwice === true };
  if (!known.enabled) return settle(tools, { known, next: withNews(known, news) }, null, confirming);
  // What is asked of the host is not for news to change.
  const looking = tools.host.observe(questionOf(known));
  const [seen, next] = await meanwhile(tools, looking, () => withNews(known, news));
  const planned = await survey(tools, next, { seen });
  if (next === known && isPostponed(planned, options)) return withoutChange(planned);
  return settle(tools, { known, next }, planned, confirming);
}

async function readJoined(tools: Tools, link: string): Promise<Joined | null> {
  const known = await tools.store.read(link);
  return known !== null && isJoined(known) ? known : null;
}

/** What is on disk, and what it becomes with the news. */
interface Reckoned {
  readonly known: Joined;
  readonly next: Joined;
}

/** True of drift that is left to a later pass. */
function isPostponed({ changes }: Survey, { mayRepair }: PassOptions): boolean {
  return changes.length > 0 && mayRepair?.(changes) === false;
}

function withoutChange(planned: Survey | null): Pass {
  return { survey: planned, changes: [], isDrift: true };
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
      ? await applyKnown(tools, planned, known, options)
      : await applyConfirmed(tools, planned, known, options);
  await save(tools, state, known, planned);
  return { survey: planned, changes: planned.changes, isDrift };
}
