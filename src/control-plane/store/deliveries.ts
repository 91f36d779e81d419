import type { Event } from '../../contract/event.ts';
import type { Db } from './tables.ts';

/** Stores what the webhook is to receive; due at once. */
export async function insertDelivery(db: Db, event: Event): Promise<void> {
  const { id, at } = event;
  const body = JSON.stringify({ type: event.type, timestamp: at, data: event });
  await db.insertInto('deliveries').values({ event_id: id, body, created_at: at, attempts: 0, next_at: at }).execute();
}
