import { type Selectable, sql } from 'kysely';
import { type ChainPlace, chainStart } from '../../core/audit/chain.ts';
import type { StoredEntry } from './audit.ts';
import { locksRows } from './database.ts';
import type { Db, Tables } from './tables.ts';

/** Organizations with entries that are not chained yet. */
export async function listUnchained(db: Db): Promise<number[]> {
  const rows = await db
    .selectFrom('audit_entries')
    .select('organization_id')
    .distinct()
    .where('organization_id', 'is not', null)
    .where('chain_seq', 'is', null)
    .execute();
  return rows.flatMap(({ organization_id: id }) => id ?? []);
}

/** The last link of an organization. Other writers wait until the transaction ends. */
export async function lockChain(db: Db, organization: number): Promise<ChainPlace> {
  const start = { organization_id: organization, seq: 0, hash: chainStart };
  await db
    .insertInto('audit_chains')
    .values(start)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return db
    .selectFrom('audit_chains')
    .select(['seq', 'hash'])
    .where('organization_id', '=', organization)
    .$if(locksRows(db), (query) => query.forUpdate())
    .executeTakeFirstOrThrow();
}

/** The oldest entries that are not chained yet. */
export async function readUnchained(db: Db, organization: number, limit: number): Promise<StoredEntry[]> {
  return db
    .selectFrom('audit_entries')
    .selectAll()
    .where('organization_id', '=', organization)
    .where('chain_seq', 'is', null)
    .orderBy('id')
    .limit(limit)
    .$if(locksRows(db), (query) => query.forUpdate())
    .execute();
}

export async function insertLinks(
  db: Db,
  organization: number,
  links: readonly (ChainPlace & { readonly id: number })[],
): Promise<void> {
  const last = links.at(-1);
  if (last === undefined) return;
  for (const { id, seq, hash } of links) {
    await db.updateTable('audit_entries').set({ chain_seq: seq, chain_hash: hash }).where('id', '=', id).execute();
  }
  await db
    .updateTable('audit_chains')
    .set({ seq: last.seq, hash: last.hash })
    .where('organization_id', '=', organization)
    .execute();
}

/** The entries of an organization after a link, in the order of the chain. */
export async function readChained(db: Db, organization: number, after: number, limit: number): Promise<StoredEntry[]> {
  return db
    .selectFrom('audit_entries')
    .selectAll()
    .where('organization_id', '=', organization)
    .where('chain_seq', '>', after)
    .orderBy('chain_seq')
    .limit(limit)
    .execute();
}

/** A link whose entry retention removed. */
export type PrunedLink = Selectable<Tables['audit_pruned']>;

/** Links of an organization by number. A link has its entry, or is a {@link PrunedLink}. */
export async function listLinks(
  db: Db,
  organization: number,
  after: number,
  limit: number,
): Promise<(StoredEntry | PrunedLink)[]> {
  const entries = await readChained(db, organization, after, limit);
  const pruned = await db
    .selectFrom('audit_pruned')
    .selectAll()
    .where('organization_id', '=', organization)
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(limit)
    .execute();
  return [...entries, ...pruned].sort((one, other) => seqOf(one) - seqOf(other)).slice(0, limit);
}

export function seqOf(link: StoredEntry | PrunedLink): number {
  return 'seq' in link ? link.seq : (link.chain_seq ?? 0);
}

export async function insertPruned(db: Db, links: readonly PrunedLink[]): Promise<void> {
  if (links.length > 0) await db.insertInto('audit_pruned').values(links).execute();
}

/** Deletes the links before the oldest entries, but for the last of them: it is the new anchor. */
export async function moveAnchors(db: Db): Promise<void> {
  await sql`
    delete from audit_pruned where seq < (
      select max(anchor.seq) from audit_pruned as anchor
      where anchor.organization_id = audit_pruned.organization_id and anchor.seq < (
        select min(chain_seq) from audit_entries where audit_entries.organization_id = anchor.organization_id
      )
    )`.execute(db);
}
