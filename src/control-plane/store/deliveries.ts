import type { Selectable } from 'kysely';
import type { Event } from '../../contract/event.ts';
import { countRows, locksRows } from './database.ts';
import type { Db, Tables } from './tables.ts';

/** Stores an event for the webhook. The delivery is due immediately. */
export async function insertDelivery(db: Db, event: Event): Promise<void> {
  const { id, at } = event;
  const body = JSON.stringify({ type: event.type, timestamp: at, data: event });
  await db.insertInto('deliveries').values({ event_id: id, body, created_at: at, attempts: 0, next_at: at }).execute();
}

export type WebhookDelivery = Selectable<Tables['deliveries']>;

export async function hasDueDelivery(db: Db, now: string): Promise<boolean> {
  return (await due(db, now, 1).executeTakeFirst()) !== undefined;
}

/** Claims due deliveries for this process until the instant `until`. */
export async function claimDeliveries(
  transaction: Db,
  { now, until, limit }: { readonly now: string; readonly until: string; readonly limit: number },
): Promise<WebhookDelivery[]> {
  const rows = await due(transaction, now, limit)
    .$if(locksRows(transaction), (query) => query.forUpdate().skipLocked())
    .execute();
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  return transaction
    .updateTable('deliveries')
    .set((eb) => ({ next_at: until, attempts: eb('attempts', '+', 1) }))
    .where('id', 'in', ids)
    .returningAll()
    .execute();
}

function due(db: Db, now: string, limit: number) {
  return db
    .selectFrom('deliveries')
    .select('id')
    .where('next_at', '<=', now)
    .orderBy('next_at')
    .orderBy('id')
    .limit(limit);
}

export async function deleteDelivery(db: Db, id: number): Promise<void> {
  await db.deleteFrom('deliveries').where('id', '=', id).execute();
}

/** Sets when a delivery is due again, unless another process has claimed it in the meantime. */
export async function postponeDelivery(
  db: Db,
  { id, attempts }: Pick<WebhookDelivery, 'id' | 'attempts'>,
  next_at: string,
): Promise<void> {
  await db.updateTable('deliveries').set({ next_at }).where('id', '=', id).where('attempts', '=', attempts).execute();
}

export async function deleteDeliveries(db: Db, before: string): Promise<void> {
  await db.deleteFrom('deliveries').where('created_at', '<', before).execute();
}

/** Counts the waiting deliveries, with the instant of the oldest. */
export async function countDeliveries(db: Db): Promise<{ readonly count: number; readonly oldest: string | null }> {
  const first = await db.selectFrom('deliveries').select('created_at').orderBy('id').limit(1).executeTakeFirst();
  return { count: await countRows(db.selectFrom('deliveries')), oldest: first?.created_at ?? null };
}
