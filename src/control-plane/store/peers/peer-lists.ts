import { type ExpressionBuilder, type NotNull, sql } from 'kysely';
import type { Prefix } from '../../../core/net/cidr.ts';
import { countRows } from '../database.ts';
import { readPage, type Slice, type StoredPage } from '../page.ts';
import type { Db, Tables } from '../tables.ts';
import { peerColumns, type StoredPeer, tokenMarkOf } from './peers.ts';

/** Lists the peers in the map of a network, which are neither suspended nor expired. */
export async function listPeers(db: Db, networkId: number): Promise<StoredPeer[]> {
  return db
    .selectFrom('peers')
    .select(peerColumns)
    .where('network_id', '=', networkId)
    .where(isListed)
    .orderBy('id')
    .execute();
}

/** Lists all peers of a network, also suspended and expired ones. */
export async function listAllPeers(db: Db, networkId: number): Promise<StoredPeer[]> {
  const peers = db.selectFrom('peers').select(peerColumns).where('network_id', '=', networkId);
  return peers.orderBy('id').execute();
}

/** Selects peers of a network: all, the peers in its map, or suspended and expired peers. */
export type PeerFilter = 'all' | 'listed' | 'unlisted';

export async function listPeerPage(
  db: Db,
  networkId: number,
  { which, owned }: { readonly which: PeerFilter; readonly owned: boolean },
  slice: Slice,
): Promise<StoredPage<StoredPeer>> {
  const list = db
    .selectFrom('peers')
    .select(peerColumns)
    .where('network_id', '=', networkId)
    .$if(owned, (query) => query.where('user_email', 'is not', null))
    .$if(which === 'listed', (query) => query.where(isListed))
    .$if(which === 'unlisted', (query) => query.where((eb) => eb.not(isListed(eb))));
  return readPage(db, list, slice);
}

/** With `withOwnRoutes`, also peers that do not serve exactly all routes of the network. */
export async function listPeersAmong(
  db: Db,
  networkId: number,
  { ids, withOwnRoutes }: { ids: readonly number[]; withOwnRoutes: boolean },
): Promise<StoredPeer[]> {
  return db
    .selectFrom('peers')
    .select(peerColumns)
    .where('network_id', '=', networkId)
    .where((eb) =>
      eb.or([
        // An empty list is invalid SQL. No peer has the id 0.
        eb('id', 'in', [0, ...ids]),
        ...(withOwnRoutes ? [eb('routes', 'is not', null), eb('withdrawn', '!=', '[]')] : []),
      ]),
    )
    .where(isListed)
    .orderBy('id')
    .execute();
}

/** Lists the peers of a network that have these addresses. */
export async function listPeersAt(
  db: Db,
  networkId: number,
  addresses: readonly string[],
): Promise<Pick<StoredPeer, 'id' | 'name' | 'address'>[]> {
  const peers = db.selectFrom('peers').select(['id', 'name', 'address']).where('network_id', '=', networkId);
  return peers.where('address', 'in', addresses).execute();
}

/** A peer's id, with a mark that differs for the same id in another history of the database. */
export type TokenMark = readonly [id: number, tokenMark: number];

/** Lists the marks of peers in the map of a network: all, or the peers with these ids. */
export async function listTokenMarks(db: Db, networkId: number, ids?: readonly number[]): Promise<TokenMark[]> {
  const query = db.selectFrom('peers').select(['id', 'token_hash']).where('network_id', '=', networkId);
  const rows = await (ids === undefined ? query : query.where('id', 'in', [...ids])).where(isListed).execute();
  return rows.map(({ id, token_hash }) => [id, tokenMarkOf(token_hash)]);
}

export async function listKeys(
  db: Db,
  networkId: number,
): Promise<Pick<StoredPeer, 'id' | 'name' | 'public_key' | 'address'>[]> {
  return db
    .selectFrom('peers')
    .select(['id', 'name', 'public_key', 'address'])
    .where('network_id', '=', networkId)
    .execute();
}

/**
 * Returns the range and relay of a network, and its connectors with their last state, suspended and
 * expired ones too; undefined if there is no such network.
 */
export async function findRelays(db: Db, networkId: number) {
  const rows = await db
    .selectFrom('networks')
    .leftJoin('peers', (join) =>
      // SQLite uses the index of connectors only with a literal.
      join.onRef('peers.network_id', '=', 'networks.id').on('peer_type', '=', sql.lit('connector' as const)),
    )
    .leftJoin('peer_health', 'peer_health.peer_id', 'peers.id')
    .leftJoin('network_rules', 'network_rules.network_id', 'networks.id')
    .select([
      'private_cidr',
      'relay',
      'mode',
      'peers.enforces_rules',
      'peers.id',
      'peers.name',
      'peer_type',
      'endpoint',
      'withdrawn',
    ])
    .select(['suspended_at', 'expired', 'priority', 'serving_since', 'announced'])
    .where('networks.id', '=', networkId)
    .$narrowType<{ name: NotNull; withdrawn: NotNull; expired: NotNull; priority: NotNull; enforces_rules: NotNull }>()
    .execute();
  const [network] = rows;
  if (network === undefined) return undefined;
  const connectors = rows.flatMap(({ id, peer_type, ...peer }) =>
    id === null || peer_type === null ? [] : { ...peer, id, peer_type },
  );
  const { private_cidr, relay, mode } = network;
  return { range: private_cidr as Prefix, relay, isClosed: mode === 'closed', connectors };
}

export async function listEndpoints(
  db: Db,
  networkId: number,
): Promise<{ id: number; name: string; endpoint: string }[]> {
  const query = db.selectFrom('peers').select(['id', 'name', 'endpoint']).where('network_id', '=', networkId);
  const rows = await query.where('endpoint', 'is not', null).orderBy('id').execute();
  return rows.flatMap(({ endpoint, ...peer }) => (endpoint === null ? [] : [{ ...peer, endpoint }]));
}

export async function listNetworksWithExpired(db: Db, now: string): Promise<number[]> {
  const rows = await selectExpiring(db).select('network_id').distinct().where('expires_at', '<=', now).execute();
  return rows.map(({ network_id }) => network_id);
}

export async function listExpired(db: Db, networkId: number, now: string): Promise<Pick<StoredPeer, 'id' | 'name'>[]> {
  return selectExpiring(db)
    .select(['id', 'name'])
    .where('network_id', '=', networkId)
    .where('expires_at', '<=', now)
    .orderBy('id')
    .execute();
}

/** Returns the instant at which the next peer of any network expires; null if none does. */
export async function findNextExpiry(db: Db): Promise<string | null> {
  const row = await selectExpiring(db).select('expires_at').orderBy('expires_at').limit(1).executeTakeFirst();
  return row?.expires_at ?? null;
}

/** Counts the peers of a network that wait for approval. */
export async function countWaiting(db: Db, networkId: number): Promise<number> {
  return countRows(selectWaiting(db).where('network_id', '=', networkId));
}

/** Lists the networks with peers that have waited for approval since before an instant. */
export async function listNetworksWithUnapproved(db: Db, before: string): Promise<number[]> {
  const late = selectWaiting(db).where('awaiting_approval', '<', before);
  const rows = await late.select('network_id').distinct().execute();
  return rows.map(({ network_id }) => network_id);
}

export async function listUnapproved(
  db: Db,
  networkId: number,
  before: string,
): Promise<Pick<StoredPeer, 'id' | 'name' | 'address'>[]> {
  return selectWaiting(db)
    .select(['id', 'name', 'address'])
    .where('network_id', '=', networkId)
    .where('awaiting_approval', '<', before)
    .orderBy('id')
    .execute();
}

function selectWaiting(db: Db) {
  return db.selectFrom('peers').where('awaiting_approval', 'is not', null).where('suspended_at', 'is not', null);
}

function selectExpiring(db: Db) {
  return db
    .selectFrom('peers')
    .where('expires_at', 'is not', null)
    .where('expired', '=', 0)
    .where('suspended_at', 'is', null);
}

function isListed(eb: ExpressionBuilder<Tables, 'peers'>) {
  return eb.and([eb('suspended_at', 'is', null), eb('expired', '=', 0)]);
}
