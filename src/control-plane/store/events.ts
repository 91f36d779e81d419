import type { Selectable } from 'kysely';
import type { Event, EventType } from '../../contract/event.ts';
import type { Db, Tables } from './tables.ts';

/** Stores an event and returns its id. Later events of a network have higher ids. */
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

/**
 * Lists events of a network, oldest first: the events after an id, or the newest events for null.
 * An id higher than any event's comes from another history of the database and counts as null.
 */
export async function listEvents(db: Db, network: number, after: number | null, limit: number): Promise<Event[]> {
  const events = db.selectFrom('events').selectAll().where('network_id', '=', network);
  const newest = events.orderBy('id', 'desc').limit(limit);
  if (after === null) return (await newest.execute()).reverse().map(toEvent);
  const rows = await events.where('id', '>', after).orderBy('id').limit(limit).execute();
  if (rows.length > 0) return rows.map(toEvent);
  const last = await events.clearSelect().select('id').orderBy('id', 'desc').limit(1).executeTakeFirst();
  return last === undefined || last.id >= after ? [] : listEvents(db, network, null, limit);
}

function toEvent(row: Selectable<Tables['events']>): Event {
  const { id, at, type, network_id: network, peer_id, peer_name, route } = row;
  const peer = peer_id === null ? null : { id: peer_id, name: peer_name ?? '' };
  return { id, at, type, network, peer, route, details: JSON.parse(row.details) };
}

/** Events before an instant, or events of a network and type up to the id `to`. */
type Surplus =
  | { readonly before: string }
  | { readonly network: number; readonly type: EventType; readonly to: number };

export async function deleteEvents(db: Db, which: Surplus, limit: number): Promise<number> {
  const events = db.selectFrom('events').select('id').limit(limit);
  const those =
    'before' in which
      ? events.where('at', '<', which.before).orderBy('at')
      : events
          .where('network_id', '=', which.network)
          .where('type', '=', which.type)
          .where('id', '<=', which.to)
          .orderBy('id');
  const { numDeletedRows } = await db.deleteFrom('events').where('id', 'in', those).executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

/**
 * Lists the oldest events of the most frequent types of each network with more than `most`: a host
 * can cause some types at will, which must not displace other types.
 */
export async function listSurplus(db: Db, most: number): Promise<Surplus[]> {
  const events = db.selectFrom('events');
  const count = db.fn.countAll();
  const crowded = await events.select('network_id').groupBy('network_id').having(count, '>', most).execute();
  const found = crowded.map(async ({ network_id: network }) => {
    const own = events.where('network_id', '=', network);
    const rows = await own
      .select(['type', count.as('count')])
      .groupBy('type')
      .execute();
    const types = rows.map(({ type, count }) => ({ type, count: Number(count) }));
    const share = mostOfEach(types, most);
    const tooMany = types.filter(({ count }) => count > share);
    const surplus = tooMany.map(async ({ type }) => {
      const newest = own.select('id').where('type', '=', type).orderBy('id', 'desc');
      const first = await newest.offset(share).limit(1).executeTakeFirst();
      return first === undefined ? [] : [{ network, type, to: first.id }];
    });
    return (await Promise.all(surplus)).flat();
  });
  return (await Promise.all(found)).flat();
}

/** The limit for each type. Types with fewer events leave their share to the others. */
function mostOfEach(types: readonly { readonly count: number }[], most: number): number {
  let room = most;
  for (const [index, { count }] of types.toSorted((one, other) => one.count - other.count).entries()) {
    const share = Math.floor(room / (types.length - index));
    if (count > share) return share;
    room -= count;
  }
  return most;
}
