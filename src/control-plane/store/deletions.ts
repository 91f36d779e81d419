import type { DeletionOutcome } from '../../contract/removal.ts';
import type { StoredNetwork } from './networks.ts';
import type { Db } from './tables.ts';

export interface StoredDeletion {
  readonly network_id: number;
  readonly nonce: string;
  readonly deleted_at: string;
}

/** A peer of a deleted network, as its token identifies it. */
export interface DeletedPeer extends StoredDeletion {
  readonly id: number;
  readonly outcome: DeletionOutcome | null;
}

/** Records a deleted network and its peers' tokens. Skips a network without `lastingNonce`. */
export async function insertDeletion(
  db: Db,
  organization_id: number,
  { id: network_id, name, lastingNonce: nonce }: StoredNetwork,
  deleted_at: string,
): Promise<void> {
  if (nonce === null) return;
  await db.deleteFrom('deleted_networks').where('network_id', '=', network_id).execute();
  await db.insertInto('deleted_networks').values({ network_id, organization_id, name, nonce, deleted_at }).execute();
  await db
    .insertInto('deleted_peers')
    .columns(['network_id', 'peer_id', 'name', 'token_hash', 'version', 'last_seen'])
    .expression((eb) =>
      eb
        .selectFrom('peers')
        .leftJoin('peer_health', 'peer_health.peer_id', 'peers.id')
        .select(['peers.network_id', 'peers.id', 'peers.name', 'token_hash', 'version', 'last_seen'])
        .where('peers.network_id', '=', network_id),
    )
    .execute();
}

/** Finds the peer of a deleted network by its token; undefined for tokens of other networks. */
export async function findDeletedPeer(db: Db, network: number, tokenHash: string): Promise<DeletedPeer | undefined> {
  return db
    .selectFrom('deleted_peers')
    .innerJoin('deleted_networks', 'deleted_networks.network_id', 'deleted_peers.network_id')
    .select(['deleted_peers.id', 'outcome', 'deleted_networks.network_id', 'nonce', 'deleted_at'])
    .where('token_hash', '=', tokenHash)
    .where('deleted_peers.network_id', '=', network)
    .executeTakeFirst();
}

/** Records what the last request of a peer of a deleted network showed. */
export async function saveOutcome(db: Db, id: number, outcome: DeletionOutcome, at: string): Promise<void> {
  await db.updateTable('deleted_peers').set({ outcome, last_seen: at }).where('id', '=', id).execute();
}

export async function findDeletion(db: Db, organization: number, network: number): Promise<StoredDeletion | undefined> {
  return db
    .selectFrom('deleted_networks')
    .select(['network_id', 'nonce', 'deleted_at'])
    .where('network_id', '=', network)
    .where('organization_id', '=', organization)
    .executeTakeFirst();
}

export interface UnconfirmedHost {
  readonly id: number;
  readonly name: string;
  readonly version: string | null;
  readonly last_seen: string | null;
  readonly deletion: DeletionOutcome | null;
}

/** Lists the hosts that have not confirmed the deletion, except peers that never made a request. */
export async function listUnconfirmed(db: Db, network: number): Promise<UnconfirmedHost[]> {
  return db
    .selectFrom('deleted_peers')
    .select(['peer_id as id', 'name', 'version', 'last_seen', 'outcome as deletion'])
    .where('network_id', '=', network)
    .where('last_seen', 'is not', null)
    .where((eb) => eb.or([eb('outcome', 'is', null), eb('outcome', '!=', 'applied')]))
    .orderBy('peer_id')
    .execute();
}

export async function deleteDeletions(db: Db, before: string): Promise<void> {
  await db.deleteFrom('deleted_networks').where('deleted_at', '<', before).execute();
}
