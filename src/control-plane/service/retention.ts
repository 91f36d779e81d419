import { setTimeout as sleep } from 'node:timers/promises';
import { deleteEntries, type EntryAge, listAges } from '../store/audit.ts';
import { deleteDeletions } from '../store/deletions.ts';
import { deleteDeliveries } from '../store/deliveries.ts';
import { deleteEvents, listSurplus } from '../store/events.ts';
import { deleteFormerIdentities } from '../store/former-identities.ts';
import type { Context } from './context.ts';

const dayMs = 24 * 3600 * 1000;
/** Actions that any caller, or any user, can repeat without end: their entries must not fill the disk. */
const repeatable: readonly string[] = [
  ...['login.refused', 'login', 'logout', 'session.revoke'],
  ...['token.create', 'token.revoke', 'password.change', 'password.refused'],
  ...['network.create', 'network.update', 'network.delete'],
];

/** A host that was off for longer gets a 401, and keeps its tunnel. */
const deletionDays = 90;

/** What is kept of the audit, and how many entries are read at once. */
export interface Retention {
  readonly days: number;
  /** Of each action that can be repeated without end, so many entries. */
  readonly mostOfEach?: number;
  /** Entries that are read at once: SQLite answers no request meanwhile. */
  readonly batch?: number;
  /** Lets others have their turn; called between two batches. */
  readonly pause?: () => Promise<unknown>;
  /** Ends the pruning after the batch that is under way. */
  readonly signal?: AbortSignal;
}

/**
 * Forgets what of the audit is older than so many days, and of what can be repeated without end all but the newest; batch by batch. The
 * identities of removed peers are remembered as long, and deleted networks for 90 days.
 */
export async function pruneAudit(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  retention: Retention,
): Promise<void> {
  const { days, mostOfEach = 100_000, batch = 500, pause = () => sleep(10), signal } = retention;
  const now = (await readTime(db)).getTime();
  const daysAgo = (count: number) => new Date(now - count * dayMs).toISOString();
  const before = daysAgo(days);
  await deleteFormerIdentities(db, before);
  await deleteDeletions(db, daysAgo(deletionDays));
  const counts = new Map<string, number>();
  for (let entries = await listAges(db, null, batch); entries.length > 0; ) {
    const [newest, oldest] = [entries[0]?.id ?? 0, entries.at(-1)?.id ?? 0];
    if (entries.some(({ at }) => at < before)) await deleteEntries(db, { from: oldest, to: newest }, { before });
    for (const [action, to] of findSurplus(entries, counts, mostOfEach)) {
      await deleteEntries(db, { from: oldest, to }, { action });
    }
    await pause();
    if (signal?.aborted) return;
    entries = await listAges(db, oldest, batch);
  }
}

/** Counts entries, newest first, on top of those before; of each action with too many, the newest that is one too many. */
function findSurplus(entries: readonly EntryAge[], counts: Map<string, number>, most: number): Map<string, number> {
  const surplus = new Map<string, number>();
  for (const { id, action } of entries) {
    if (!repeatable.includes(action)) continue;
    const count = (counts.get(action) ?? 0) + 1;
    counts.set(action, count);
    if (count > most && !surplus.has(action)) surplus.set(action, id);
  }
  return surplus;
}

/** Days that events are kept, how many of a network, and days that an event waits for the webhook of a control plane that does not run. */
const kept = { eventDays: 30, eventsOfNetwork: 10_000, deliveryDays: 7 } as const;

/** Forgets old events, and of each network all but the newest, batch by batch; and what waits for a webhook that there is no longer. */
export async function pruneEvents(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  { mostOfEach = kept.eventsOfNetwork, batch = 500, pause = () => sleep(10), signal }: Omit<Retention, 'days'> = {},
): Promise<void> {
  const now = (await readTime(db)).getTime();
  const daysAgo = (days: number) => new Date(now - days * dayMs).toISOString();
  await deleteDeliveries(db, daysAgo(kept.deliveryDays));
  const remove = async (which: Parameters<typeof deleteEvents>[1]) => {
    while (!signal?.aborted && (await deleteEvents(db, which, batch)) === batch) await pause();
  };
  await remove({ before: daysAgo(kept.eventDays) });
  for (const surplus of await listSurplus(db, mostOfEach)) await remove(surplus);
}

/** Prunes the audit now, and once a day until `stop`. A failure goes to `onFailure`, and the next day tries again. */
export function pruneAuditDaily(
  context: Pick<Context, 'db' | 'readTime'>,
  days: number,
  onFailure: (error: unknown) => void,
): Pruning {
  return pruneEvery(dayMs, (signal) => pruneAudit(context, { days, signal }), onFailure);
}

/** The same for events, once an hour. */
export function pruneEventsHourly(
  context: Pick<Context, 'db' | 'readTime'>,
  onFailure: (error: unknown) => void,
): Pruning {
  return pruneEvery(dayMs / 24, (signal) => pruneEvents(context, { signal }), onFailure);
}

interface Pruning {
  stop(): Promise<void>;
}

function pruneEvery(
  ms: number,
  work: (signal: AbortSignal) => Promise<void>,
  onFailure: (error: unknown) => void,
): Pruning {
  const end = new AbortController();
  let pruning: Promise<void> = Promise.resolve();
  const prune = () => {
    // A large audit may take longer than a day.
    pruning = pruning.then(() => work(end.signal)).catch(onFailure);
  };
  prune();
  const timer = setInterval(prune, ms);
  timer.unref();
  return {
    stop: () => {
      clearInterval(timer);
      end.abort();
      return pruning;
    },
  };
}
