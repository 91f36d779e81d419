import { isSameRevision, type Revision } from './revision.ts';
import type { Db } from './tables.ts';

/** Since how many revisions the changes of a network are remembered: who has an older one reads the whole map. */
export const rememberedRevisions = 256;

/** Which peer a revision is about; null for the network itself. */
export interface Change extends Revision {
  readonly peer: number | null;
}

/** Remembers what a revision is about, and forgets what is too long ago. */
export async function insertChange(db: Db, network: number, { revision, nonce, peer }: Change): Promise<void> {
  await db.insertInto('changes').values({ network_id: network, revision, nonce, peer_id: peer }).execute();
  await db
    .deleteFrom('changes')
    .where('network_id', '=', network)
    .where('revision', '<', revision - rememberedRevisions)
    .execute();
}

/** What happened in a network after a revision, as far as it is remembered; null where that revision is not one of this history. */
export async function listChanges(db: Db, network: number, after: Revision): Promise<Change[] | null> {
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
