import type { Random } from '../domain/tokens.ts';
import type { Db } from './tables.ts';

/** After a restore, the same number denotes another revision, with another `nonce`. */
export interface Revision {
  readonly revision: number;
  readonly nonce: string;
}

/** Returns a random value that distinguishes a revision from the same number in another history. */
export function makeNonce(random: Random): string {
  return Buffer.from(random(9)).toString('base64url');
}

export function isSameRevision(one: Revision, other: Revision): boolean {
  return one.revision === other.revision && one.nonce === other.nonce;
}

/** The number of recorded revisions. A client with an older revision reads the whole map. */
export const rememberedRevisions = 256;

/** The peer that a revision changed; null for the network itself. */
export interface PeerRevision extends Revision {
  readonly peer: number | null;
}

/** The number of rows of one statement, whose parameters both databases limit. */
const rowsAtOnce = 1000;

/** Records what a revision changed, and deletes records that are too old. */
export async function insertChanges(
  db: Db,
  network: number,
  { revision, nonce }: Revision,
  peers: readonly PeerRevision['peer'][],
): Promise<void> {
  for (let start = 0; start < peers.length; start += rowsAtOnce) {
    const rows = peers.slice(start, start + rowsAtOnce);
    await db
      .insertInto('changes')
      .values(rows.map((peer_id) => ({ network_id: network, revision, nonce, peer_id })))
      .execute();
  }
  await db
    .deleteFrom('changes')
    .where('network_id', '=', network)
    .where('revision', '<', revision - rememberedRevisions)
    .execute();
}

/** Null if the revision belongs to another history or is no longer recorded. */
export async function listChanges(db: Db, network: number, after: Revision): Promise<PeerRevision[] | null> {
  const rows = await db
    .selectFrom('changes')
    .select(['revision', 'nonce', 'peer_id as peer'])
    .where('network_id', '=', network)
    .where('revision', '>=', after.revision)
    .execute();
  const known = rows.flatMap(({ nonce, ...row }) => (nonce === null ? [] : [{ ...row, nonce }]));
  if (!known.some((row) => isSameRevision(row, after))) return null;
  return known.filter(({ revision }) => revision > after.revision);
}
