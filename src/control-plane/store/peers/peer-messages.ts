import type { PeerMessage, PeerMessageKind } from '../../../contract/network.ts';
import type { Db } from '../tables.ts';

/** Stores messages for hosts, and deletes messages of the network before `since`. */
export async function insertMessages(
  db: Db,
  network: number,
  messages: ReadonlyMap<number, PeerMessage>,
  { at, since }: { readonly at: string; readonly since: string },
): Promise<void> {
  await db.deleteFrom('peer_messages').where('network_id', '=', network).where('created_at', '<', since).execute();
  const rows = [...messages].map(([peer_id, { kind, data }]) => ({
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

/** Lists the peers of a network with messages since an instant. */
export async function listAddressees(db: Db, network: number, since: string): Promise<number[]> {
  const rows = await db
    .selectFrom('peer_messages')
    .select('peer_id')
    .distinct()
    .where('network_id', '=', network)
    .where('created_at', '>=', since)
    .execute();
  return rows.map(({ peer_id }) => peer_id);
}

/** Returns messages since an instant, oldest first, to one caller only. Deletes older ones too. */
export async function takeMessages(
  db: Db,
  peer: number,
  kinds: readonly PeerMessageKind[],
  since: string,
): Promise<PeerMessage[]> {
  const rows = await db
    .deleteFrom('peer_messages')
    .where('peer_id', '=', peer)
    .where('kind', 'in', kinds)
    .returning(['id', 'kind', 'data', 'created_at'])
    .execute();
  return rows
    .filter(({ created_at }) => created_at >= since)
    .toSorted((one, other) => one.id - other.id)
    .map(({ kind, data }) => ({ kind, data: JSON.parse(data) }));
}
