import type { Insertable, Selectable } from 'kysely';
import type { PeerCaller } from '../caller.ts';
import { type Page, readPage, type Slice } from './page.ts';
import type { Db, Tables } from './tables.ts';

export type StoredPeer = Omit<Selectable<Tables['peers']>, 'token_hash'>;
export type NewPeer = Insertable<Tables['peers']>;
export type PeerFields = Partial<
  Pick<
    StoredPeer,
    | 'name'
    | 'label'
    | 'public_key'
    | 'previous_key'
    | 'endpoint'
    | 'routes'
    | 'withdrawn'
    | 'key_proof'
    | 'network_secret_tag'
    | 'serving_since'
    | 'priority'
  >
>;

export async function listPeers(db: Db, networkId: number): Promise<StoredPeer[]> {
  return db.selectFrom('peers').select(columns).where('network_id', '=', networkId).orderBy('id').execute();
}

export async function listPeerPage(db: Db, networkId: number, slice: Slice): Promise<Page<StoredPeer>> {
  return readPage(db, db.selectFrom('peers').select(columns).where('network_id', '=', networkId), slice);
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

/** A peer by its id, and what tells it from a peer that has the same id in another history of the database. */
export type PeerMark = readonly [id: number, tokenMark: number];

export async function listPeerMarks(db: Db, networkId: number): Promise<PeerMark[]> {
  const rows = await db.selectFrom('peers').select(['id', 'token_hash']).where('network_id', '=', networkId).execute();
  return rows.map(({ id, token_hash }) => [id, markOf(token_hash)]);
}

/** Those of these ids that peers of the network have. */
export async function listPeerMarksAmong(db: Db, networkId: number, ids: readonly number[]): Promise<PeerMark[]> {
  const query = db.selectFrom('peers').select(['id', 'token_hash']).where('network_id', '=', networkId);
  const rows = await query.where('id', 'in', [...ids]).execute();
  return rows.map(({ id, token_hash }) => [id, markOf(token_hash)]);
}

/** 48 bits of a hash: a network of thousands of peers is kept in memory. */
function markOf(tokenHash: string): number {
  return Buffer.from(tokenHash, 'base64url').readUIntBE(0, 6);
}

export async function findPeer(db: Db, networkId: number, id: number): Promise<StoredPeer | undefined> {
  return db
    .selectFrom('peers')
    .select(columns)
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .executeTakeFirst();
}

/** Whether a peer of the network, other than `except`, has this public key, or had it before its last change; null where none has. */
export async function findKeyUse(
  db: Db,
  networkId: number,
  publicKey: string,
  except = 0,
): Promise<'present' | 'previous' | null> {
  const rows = await db
    .selectFrom('peers')
    .select('public_key')
    .where('network_id', '=', networkId)
    .where((eb) => eb.or([eb('public_key', '=', publicKey), eb('previous_key', '=', publicKey)]))
    .where('id', '!=', except)
    .execute();
  if (rows.length === 0) return null;
  return rows.some(({ public_key }) => public_key === publicKey) ? 'present' : 'previous';
}

/** The peer of the network, other than `except`, that has this label; one whose name leaves none goes by its id. */
export async function findLabelHolder(
  db: Db,
  networkId: number,
  label: string,
  except = 0,
): Promise<{ id: number; name: string } | undefined> {
  const [, id] = /^peer-([1-9][0-9]{0,14})$/.exec(label) ?? [];
  const others = db
    .selectFrom('peers')
    .select(['id', 'name'])
    .where('network_id', '=', networkId)
    .where('id', '!=', except);
  const named = await others.where('label', '=', label).executeTakeFirst();
  if (named || id === undefined) return named;
  return others.where('id', '=', Number(id)).where('label', 'is', null).executeTakeFirst();
}

/** How many peers of a network have this label with a suffix. */
export async function countSuffixed(db: Db, networkId: number, label: string): Promise<number> {
  const { count } = await db
    .selectFrom('peers')
    .select((eb) => eb.fn.countAll<number | string>().as('count'))
    .where('network_id', '=', networkId)
    .where('label', 'like', `${label}-%`)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The peers of a network that can be dialled. */
export async function listEndpoints(
  db: Db,
  networkId: number,
): Promise<{ id: number; name: string; endpoint: string }[]> {
  const query = db.selectFrom('peers').select(['id', 'name', 'endpoint']).where('network_id', '=', networkId);
  const rows = await query.where('endpoint', 'is not', null).orderBy('id').execute();
  return rows.flatMap(({ endpoint, ...peer }) => (endpoint === null ? [] : [{ ...peer, endpoint }]));
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
  return row && { kind: 'peer', ...row, tokenMark: markOf(tokenHash) };
}

const columns = [
  'id',
  'network_id',
  'name',
  'label',
  'peer_type',
  'public_key',
  'previous_key',
  'address',
  'endpoint',
  'routes',
  'withdrawn',
  'identity_key',
  'key_proof',
  'network_secret_tag',
  'serving_since',
  'priority',
  'created_at',
] as const;
