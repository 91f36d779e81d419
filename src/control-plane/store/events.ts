import type { Event } from '../../contract/event.ts';
import type { Db } from './tables.ts';

/** Stores an event. Returns its id: of two events of a network, the later one has the higher. */
export async function insertEvent(db: Db, { peer, details, network, ...event }: Omit<Event, 'id'>): Promise<number> {
  const { id } = await db
    .insertInto('events')
    .values({
      ...event,
      network_id: network,
      peer_id: peer?.id ?? null,
      peer_name: peer?.name ?? null,
      details: JSON.stringify(details),
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}
