import { setTimeout as sleep } from 'node:timers/promises';
import { pruneAction } from '../../core/audit/verify-chain.ts';
import { deleteEntries, type EntryAge, listAges, readToPrune, type StoredEntry } from '../store/audit.ts';
import { insertPruned, moveAnchors } from '../store/audit-chain.ts';
import { deleteDeletions } from '../store/deletions.ts';
import { deleteDeliveries } from '../store/deliveries.ts';
import { deleteEvents, listSurplus } from '../store/events.ts';
import { deleteFormerIdentities } from '../store/peers/enrollments.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';
import { record, system } from './audit.ts';
import { chainEntries, digestOf } from './audit-chain.ts';
import type { Context } from './context.ts';

const dayMs = 24 * 3600 * 1000;
/** Actions that a caller can repeat without limit. Their entries must not fill the disk. */
const repeatable: readonly string[] = [
  ...['login.refused', 'login.new_address', 'login', 'logout', 'session.revoke'],
  ...['token.create', 'token.revoke', 'password.change', 'password.refused'],
  ...['network.create', 'network.update', 'network.delete'],
  ...['rules.update', 'rules.confirm', 'rules.restore'],
];

/** A host that was offline for longer gets a 401, and keeps its tunnel. */
const deletionDays = 90;

export interface Retention {
  readonly days: number;
  /** The maximum number of entries per action that can be repeated without limit. */
  readonly mostOfEach?: number;
  /** Entries per read. SQLite answers no other request during a read. */
  readonly batch?: number;
  /** Lets other requests run between two batches. */
  readonly pause?: () => Promise<unknown>;
  /** Ends the pruning after the current batch. */
  readonly signal?: AbortSignal;
}

/** Works in batches. Keeps identities of removed peers for `days`, deleted networks for 90 days. */
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
  const prune = createPruning(readTime);
  const remove = (range: Parameters<typeof readToPrune>[1], which: Which) =>
    transact(db, (transaction) => prune(transaction, range, which));
  for (let entries = await listAges(db, null, batch); entries.length > 0; ) {
    const [newest, oldest] = [entries[0]?.id ?? 0, entries.at(-1)?.id ?? 0];
    if (entries.some(({ at }) => at < before)) await remove({ from: oldest, to: newest }, { before });
    for (const [action, to] of findSurplus(entries, counts, mostOfEach)) {
      await remove({ from: oldest, to }, { action });
    }
    await pause();
    if (signal?.aborted) return;
    entries = await listAges(db, oldest, batch);
  }
  await moveAnchors(db);
}

type Which = Parameters<typeof readToPrune>[2];

/** Enough for the statement: it is the newest entry, unless a flood of others waits. */
const chainedAtOnce = 10_000;

/**
 * Creates a function that deletes entries, and leaves their links. The chain of an organization
 * gets the statement of it, once per kind and run, in the same transaction.
 */
function createPruning(readTime: Context['readTime']) {
  const stated = new Map<string, number>();
  return async (db: Db, range: Parameters<typeof readToPrune>[1], which: Which) => {
    const rows = await readToPrune(db, range, which);
    const links = rows.filter(isChained).map((row) => ({
      ...{ organization_id: row.organization_id, seq: row.chain_seq, hash: row.chain_hash, digest: digestOf(row) },
    }));
    await insertPruned(db, links);
    await deleteEntries(
      db,
      rows.map(({ id }) => id),
    );
    for (const organizationId of new Set(links.map((each) => each.organization_id))) {
      const own = links.filter((each) => each.organization_id === organizationId);
      const through = Math.max(...own.map(({ seq }) => seq));
      const kind = `${organizationId} ${Object.values(which)}`;
      if (through <= (stated.get(kind) ?? 0)) continue;
      stated.set(kind, through);
      const author = { organizationId, actor: system, address: null, readTime };
      const target = { kind: 'audit', id: null, name: null } as const;
      await record(db, author, { action: pruneAction, target, details: { ...which, through } });
      await chainEntries(db, organizationId, chainedAtOnce);
    }
  };
}

type ChainedRow = StoredEntry & {
  readonly organization_id: number;
  readonly chain_seq: number;
  readonly chain_hash: string;
};

function isChained(row: StoredEntry): row is ChainedRow {
  return row.organization_id !== null && row.chain_seq !== null && row.chain_hash !== null;
}

/** Adds entries, newest first, to the counts. Returns the newest surplus entry per action. */
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

/** `deliveryDays` applies without a running webhook. */
const kept = { eventDays: 30, eventsOfNetwork: 10_000, deliveryDays: 7 } as const;

/** Deletes old events, surplus events of each network, and stale deliveries, in batches. */
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

/** Prunes the audit log daily from now until `stop`. After a failure, the next day retries. */
export function pruneAuditDaily(
  context: Pick<Context, 'db' | 'readTime'>,
  days: number,
  onFailure: (error: unknown) => void,
): Pruning {
  return pruneEvery(dayMs, (signal) => pruneAudit(context, { days, signal }), onFailure);
}

/** Prunes events like {@link pruneAuditDaily}, hourly. */
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
    // Pruning a large audit log may take longer than a day.
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
