import type { Insertable, Selectable } from 'kysely';
import type { PeerCaller } from '../../domain/caller.ts';
import { listedFieldColumns } from '../peer-columns.ts';
import type { Db, Tables } from '../tables.ts';

export type StoredPeer = Omit<Selectable<Tables['peers']>, 'token_hash'>;
export type NewPeer = Insertable<Tables['peers']>;
export type PeerFields = Partial<Omit<StoredPeer, 'id' | 'network_id' | 'address' | 'identity_key' | 'created_at'>> & {
  token_hash?: string;
};

export async function findPeer(db: Db, networkId: number, id: number): Promise<StoredPeer | undefined> {
  return db
    .selectFrom('peers')
    .select(peerColumns)
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .executeTakeFirst();
}

/** The latest instant at which a connector of the network began to serve; null if none did. */
export async function findLastServingSince(db: Db, networkId: number): Promise<string | null> {
  const row = await db
    .selectFrom('peers')
    .select(({ fn }) => fn.max('serving_since').as('last'))
    .where('network_id', '=', networkId)
    .executeTakeFirst();
  return row?.last ?? null;
}

/**
 * The instant from which a connector serves: now, but later than all others of the network. Hosts
 * prefer the earlier one. A connector that began while the clock was ahead keeps its rank.
 */
export async function nextServingSince(transaction: Db, network: number, now: Date): Promise<string> {
  const last = await findLastServingSince(transaction, network);
  const at = Math.max(now.getTime(), last === null ? 0 : Date.parse(last) + 1);
  return new Date(at).toISOString();
}

/** Finds the first peer with this identity. Versions without key proofs allowed duplicates. */
export async function findByIdentity(db: Db, networkId: number, identity: string): Promise<StoredPeer | undefined> {
  return db
    .selectFrom('peers')
    .select(peerColumns)
    .where('network_id', '=', networkId)
    .where('identity_key', '=', identity)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
}

/** Null if no peer but `except` has this key, or had it before its last change of keys. */
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

/** Undefined if another peer has its address. */
export async function insertPeer(db: Db, peer: NewPeer): Promise<StoredPeer | undefined> {
  return db
    .insertInto('peers')
    .values(peer)
    .onConflict((conflict) => conflict.columns(['network_id', 'address']).doNothing())
    .returning(peerColumns)
    .executeTakeFirst();
}

export async function updatePeer(db: Db, networkId: number, id: number, fields: PeerFields): Promise<StoredPeer> {
  return db
    .updateTable('peers')
    .set(fields)
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .returning(peerColumns)
    .executeTakeFirstOrThrow();
}

/** Deletes a peer and returns its fields; undefined if there is no such peer. */
export async function deletePeer(
  db: Db,
  networkId: number,
  id: number,
): Promise<{ address: string; name: string; identity_key: string | null } | undefined> {
  return db
    .deleteFrom('peers')
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .returning(['address', 'name', 'identity_key'])
    .executeTakeFirst();
}

/** 48 bits of the hash, because the marks of networks with thousands of peers stay in memory. */
export function tokenMarkOf(tokenHash: string): number {
  return Buffer.from(tokenHash, 'base64url').readUIntBE(0, 6);
}

/** True for a peer that waits for approval. A version without approval may have resumed it. */
export function isWaiting({
  suspended_at,
  awaiting_approval,
}: Pick<StoredPeer, 'suspended_at' | 'awaiting_approval'>): boolean {
  return suspended_at !== null && awaiting_approval !== null;
}

type Admission = Pick<StoredPeer, 'suspended_at' | 'expires_at' | 'awaiting_approval' | 'reauth_hours'>;

/** Finds the peer with this access token, and the fields that invalidate it. */
export async function findPeerCaller(
  db: Db,
  tokenHash: string,
): Promise<{ caller: Omit<PeerCaller, 'address' | 'access' | 'awaitsApproval'>; peer: Admission } | undefined> {
  const row = await db
    .selectFrom('peers')
    .innerJoin('networks', 'networks.id', 'peers.network_id')
    .select(['peers.id as peerId', 'peers.name', 'expires_at', 'suspended_at', 'awaiting_approval', 'reauth_hours'])
    .select(['networks.id as networkId', 'networks.organization_id as organizationId'])
    .where('peers.token_hash', '=', tokenHash)
    .executeTakeFirst();
  if (!row) return undefined;
  const { expires_at, suspended_at, awaiting_approval, reauth_hours, ...caller } = row;
  return {
    caller: { kind: 'peer', ...caller, expiresAt: expires_at, tokenMark: tokenMarkOf(tokenHash) },
    peer: { expires_at, suspended_at, awaiting_approval, reauth_hours },
  };
}

/** Returns a mark of a peer's token and the fields that invalidate it; undefined if removed. */
export async function findPeerById(
  db: Db,
  id: number,
): Promise<(Admission & { readonly tokenMark: number }) | undefined> {
  const row = await db
    .selectFrom('peers')
    .select(['suspended_at', 'expires_at', 'awaiting_approval', 'reauth_hours', 'token_hash'])
    .where('id', '=', id)
    .executeTakeFirst();
  if (!row) return undefined;
  const { token_hash, ...peer } = row;
  return { ...peer, tokenMark: tokenMarkOf(token_hash) };
}

export const peerColumns = [
  ...['id', 'network_id', 'name', 'label', 'peer_type', 'public_key', 'previous_key', 'address', 'endpoint'],
  ...['routes', 'withdrawn', 'expired', 'created_at', 'user_id', 'user_email'],
  ...listedFieldColumns.map(([name]) => name),
] as const;
