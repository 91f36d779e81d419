import type { PeerMessage, PeerMessageKind } from '../../../contract/network.ts';
import type { Db } from '../tables.ts';

/** Stores messages for hosts, and deletes messages of the network before `since`. */
export async function insertMessages(
  db: Db,
  network: number,
  messages: readonly (readonly [peer: number, message: PeerMessage])[],
  { at, since }: { readonly at: string; readonly since: string },
): Promise<void> {
  await db.deleteFrom('peer_messages').where('network_id', '=', network).where('created_at', '<', since).execute();
  const rows = messages.map(([peer_id, { kind, data }]) => ({
    ...{ network_id: network, peer_id, kind },
    ...{ data: JSON.stringify(data), created_at: at },
  }));
  for (let first = 0; first < rows.length; first += batch)
    await db
      .insertInto('peer_messages')
      .values(rows.slice(first, first + batch))
      .execute();
}

/** The number of rows per statement. */
const batch = 200;

export interface Addressee {
  readonly peer: number;
  readonly kind: PeerMessageKind;
}

/** Lists the peers of a network, or of all, with messages since an instant, by kind. */
export async function listAddressees(db: Db, network: number | null, since: string): Promise<Addressee[]> {
  return db
    .selectFrom('peer_messages')
    .select(['peer_id as peer', 'kind'])
    .distinct()
    .$if(network !== null, (query) => query.where('network_id', '=', network))
    .where('created_at', '>=', since)
    .execute();
}

export interface StoredMessage {
  readonly id: number;
  readonly message: PeerMessage;
  /** In milliseconds since 1970. */
  readonly at: number;
}

/** Lists at most `most` messages for a peer since an instant, oldest first. */
export async function listMessages(
  db: Db,
  peer: number,
  kinds: readonly PeerMessageKind[],
  { since, most }: { readonly since: string; readonly most: number },
): Promise<StoredMessage[]> {
  const rows = await db
    .selectFrom('peer_messages')
    .select(['id', 'kind', 'data', 'created_at'])
    .where('peer_id', '=', peer)
    .where('kind', 'in', kinds)
    .where('created_at', '>=', since)
    .orderBy('id')
    .limit(most)
    .execute();
  return rows.map(({ id, kind, data, created_at }) => ({
    id,
    message: { kind, data: JSON.parse(data) },
    at: Date.parse(created_at),
  }));
}

/** Deletes these messages, if they are for the peer. */
export async function deleteMessages(db: Db, peer: number, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await db.deleteFrom('peer_messages').where('peer_id', '=', peer).where('id', 'in', ids).execute();
}
