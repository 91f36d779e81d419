import type { Db } from './tables.ts';

/** How many revisions of a network are remembered: who has an older one reads the whole map. */
export const rememberedRevisions = 256;

/** Which peer a revision is about; null for the network itself. */
export interface Change {
  readonly revision: number;
  readonly peer: number | null;
}

/** Remembers what a revision is about, and forgets what is too long ago. */
export async function insertChange(db: Db, network: number, { revision, peer }: Change): Promise<void> {
  await db.insertInto('changes').values({ network_id: network, revision, peer_id: peer }).execute();
  await db
    .deleteFrom('changes')
    .where('network_id', '=', network)
    .where('revision', '<=', revision - rememberedRevisions)
    .execute();
}

/** What happened in a network after a revision, as far as it is remembered. */
export async function listChanges(db: Db, network: number, after: number): Promise<Change[]> {
  return db
    .selectFrom('changes')
    .select(['revision', 'peer_id as peer'])
    .where('network_id', '=', network)
    .where('revision', '>', after)
    .execute();
}
