import type { Insertable, Selectable } from 'kysely';
import type { PeerCaller } from '../caller.ts';
import type { Db, Tables } from './tables.ts';

export type StoredPeer = Omit<Selectable<Tables['peers']>, 'token_hash'>;
export type NewPeer = Insertable<Tables['peers']>;
export type PeerFields = Partial<
  Pick<StoredPeer, 'name' | 'public_key' | 'endpoint' | 'routes' | 'withdrawn' | 'key_proof' | 'network_secret_tag'>
>;

export async function listPeers(db: Db, networkId: number): Promise<StoredPeer[]> {
  return db.selectFrom('peers').select(columns).where('network_id', '=', networkId).orderBy('id').execute();
}

/** Peers of a network with these ids, as far as they are there, and with `withOwnRoutes` those that serve not simply all routes. */
export async function listPeersAmong(
  db: Db,
  networkId: number,
  { ids, withOwnRoutes }: { ids: readonly number[]; withOwnRoutes: boolean },
): Promise<StoredPeer[]> {
  return db
    .selectFrom('peers')
    .select(columns)
    .where('network_id', '=', networkId)
    .where((eb) =>
      eb.or([
        // An empty list is no SQL.
        eb('id', 'in', [0, ...ids]),
        ...(withOwnRoutes ? [eb('routes', 'is not', null), eb('withdrawn', '!=', '[]')] : []),
      ]),
    )
    .orderBy('id')
    .execute();
}

export async function listPeerIds(db: Db, networkId: number): Promise<number[]> {
  const rows = await db.selectFrom('peers').select('id').where('network_id', '=', networkId).execute();
  return rows.map(({ id }) => id);
}

/** Those of these ids that peers of the network have. */
export async function listPeerIdsAmong(db: Db, networkId: number, ids: readonly number[]): Promise<number[]> {
  const query = db.selectFrom('peers').select('id').where('network_id', '=', networkId);
  const rows = await query.where('id', 'in', [...ids]).execute();
  return rows.map(({ id }) => id);
}

export async function findPeer(db: Db, networkId: number, id: number): Promise<StoredPeer | undefined> {
  return db
    .selectFrom('peers')
    .select(columns)
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .executeTakeFirst();
}

/** True when a peer of the network, other than `except`, has this public key. */
export async function isKeyEnrolled(db: Db, networkId: number, publicKey: string, except = 0): Promise<boolean> {
  const row = await db
    .selectFrom('peers')
    .select('id')
    .where('network_id', '=', networkId)
    .where('public_key', '=', publicKey)
    .where('id', '!=', except)
    .executeTakeFirst();
  return row !== undefined;
}

/** Adds a peer; undefined when another one has its address. */
export async function insertPeer(db: Db, peer: NewPeer): Promise<StoredPeer | undefined> {
  return db
    .insertInto('peers')
    .values(peer)
    .onConflict((conflict) => conflict.columns(['network_id', 'address']).doNothing())
    .returning(columns)
    .executeTakeFirst();
}

export async function updatePeer(db: Db, networkId: number, id: number, fields: PeerFields): Promise<StoredPeer> {
  return db
    .updateTable('peers')
    .set(fields)
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .returning(columns)
    .executeTakeFirstOrThrow();
}

/** Removes a peer and gives the address and the name it had; undefined when there was none. */
export async function deletePeer(
  db: Db,
  networkId: number,
  id: number,
): Promise<{ address: string; name: string } | undefined> {
  return db
    .deleteFrom('peers')
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .returning(['address', 'name'])
    .executeTakeFirst();
}

/** Which peer holds this access token. */
export async function findPeerCaller(db: Db, tokenHash: string): Promise<Omit<PeerCaller, 'address'> | undefined> {
  const row = await db
    .selectFrom('peers')
    .innerJoin('networks', 'networks.id', 'peers.network_id')
    .select([
      'peers.id as peerId',
      'peers.name',
      'networks.id as networkId',
      'networks.organization_id as organizationId',
    ])
    .where('peers.token_hash', '=', tokenHash)
    .executeTakeFirst();
  return row && { kind: 'peer', ...row };
}

const columns = [
  'id',
  'network_id',
  'name',
  'peer_type',
  'public_key',
  'address',
  'endpoint',
  'routes',
  'withdrawn',
  'identity_key',
  'key_proof',
  'network_secret_tag',
  'created_at',
] as const;
