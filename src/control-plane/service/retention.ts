import { setTimeout as sleep } from 'node:timers/promises';
import { pruneAction } from '../../core/audit/verify-chain.ts';
import { widenAddress } from '../domain/caller.ts';
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
  /** The maximum number of entries of each action that can be repeated without limit. */
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
  const prune = createPruning(readTime);
  const remove = async (ids: readonly number[], which: Which) => {
    if (ids.length > 0) await transact(db, (transaction) => prune(transaction, ids, which));
  };
  /** Visits all entries, newest first. False if the signal ended it. */
  const visitAll = async (visit: (entries: readonly EntryAge[]) => Promise<void>): Promise<boolean> => {
    for (let entries = await listAges(db, null, batch); entries.length > 0; ) {
      await visit(entries);
      await pause();
      if (signal?.aborted) return false;
      entries = await listAges(db, entries.at(-1)?.id ?? 0, batch);
    }
    return true;
  };
  const counts: Counts = new Map();
  const isRead = await visitAll(async (entries) => {
    await remove(idsOf(entries.filter(({ at }) => at < before)), { before });
    for (const entry of entries) if (entry.at >= before) count(entry, counts);
  });
  if (!isRead) return;
  const takeSurplus = createSelection(counts, mostOfEach);
  const isDone =
    takeSurplus === null ||
    (await visitAll(async (entries) => {
      for (const [action, surplus] of Map.groupBy(takeSurplus(entries), (each) => each.action))
        await remove(idsOf(surplus), { action });
    }));
  if (isDone) await moveAnchors(db);
}

const idsOf = (entries: readonly EntryAge[]) => entries.map(({ id }) => id);

type Which = { readonly before: string } | { readonly action: string };

/** Enough for the statement: it is the newest entry, unless a flood of others waits. */
const chainedAtOnce = 10_000;

/**
 * Creates a function that deletes entries, and leaves their links. The chain of an organization
 * gets the statement of it, once per kind and run, in the same transaction.
 */
function createPruning(readTime: Context['readTime']) {
  const stated = new Map<string, number>();
  return async (db: Db, ids: readonly number[], which: Which) => {
    const rows = await readToPrune(db, ids);
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

/** The number of entries of each actor, by action. */
type Counts = Map<string, Map<string, number>>;

/** Counts an entry. Returns the number of entries of its actor and action; 0 for other actions. */
function count(entry: EntryAge, counts: Counts): number {
  const { action } = entry;
  if (!repeatable.includes(action)) return 0;
  const ofAction = counts.get(action) ?? new Map<string, number>();
  counts.set(action, ofAction);
  const actor = actorOf(entry);
  const found = (ofAction.get(actor) ?? 0) + 1;
  ofAction.set(actor, found);
  return found;
}

/** One client can have many addresses of a prefix. */
function actorOf({ actor_kind, actor_id, address }: EntryAge): string {
  return `${actor_kind} ${actor_id ?? (address === null ? '' : (widenAddress(address) ?? address))}`;
}

const sumOf = (numbers: Iterable<number>) => [...numbers].reduce((sum, each) => sum + each, 0);

/**
 * Creates a function that selects the surplus of entries, which come newest first: of each action,
 * `most` entries stay. The actors with the most entries lose theirs, so that no actor can push out
 * the entries of others. Null if there is no surplus.
 */
function createSelection(counts: Counts, most: number): ((entries: readonly EntryAge[]) => EntryAge[]) | null {
  const full = [...counts].filter(([, ofAction]) => sumOf(ofAction.values()) > most);
  if (full.length === 0) return null;
  const shares = new Map(full.map(([action, ofAction]) => [action, findShare([...ofAction.values()], most)]));
  const found: Counts = new Map();
  const left = new Map(full.map(([action]) => [action, most]));
  return (entries) =>
    entries.filter((entry) => {
      const share = shares.get(entry.action);
      const rest = left.get(entry.action) ?? 0;
      if (share === undefined) return false;
      if (count(entry, found) > share || rest === 0) return true;
      left.set(entry.action, rest - 1);
      return false;
    });
}

/** The entries that each actor may have for all to have `most`; at least one. */
function findShare(counts: readonly number[], most: number): number {
  let left = most;
  for (const [index, each] of counts.toSorted((one, other) => one - other).entries()) {
    const share = Math.floor(left / (counts.length - index));
    if (each > share) return Math.max(share, 1);
    left -= each;
  }
  return most;
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
