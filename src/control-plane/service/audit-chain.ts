import type { AuditEntry, AuditLink } from '../../contract/audit.ts';
import { digestEntry, hashLink } from '../../core/audit/chain.ts';
import type { Caller } from '../domain/caller.ts';
import type { StoredEntry } from '../store/audit.ts';
import * as store from '../store/audit-chain.ts';
import type { Db } from '../store/tables.ts';
import { toAuditEntry } from './audit.ts';
import type { Context } from './context.ts';

/**
 * Chains the oldest entries of an organization that are not chained yet, and returns how many. Runs
 * after they were committed, in a transaction of its own: requests do not wait for it.
 */
export async function chainEntries(db: Db, organization: number, limit: number): Promise<number> {
  let { seq, hash } = await store.lockChain(db, organization);
  const entries = await store.readUnchained(db, organization, limit);
  const links = entries.map((row) => {
    seq += 1;
    hash = hashLink(hash, seq, digestOf(row));
    return { id: row.id, seq, hash };
  });
  await store.insertLinks(db, organization, links);
  return links.length;
}

export function digestOf(row: StoredEntry): string {
  return digestEntry(toAuditEntry(row));
}

/** The links of the caller's organization after a number, in the order of their numbers. */
export async function readLinks(
  { db }: Pick<Context, 'db'>,
  { organizationId }: Pick<Caller, 'organizationId'>,
  after: number,
  limit: number,
): Promise<AuditLink[]> {
  return (await store.listLinks(db, organizationId, after, limit)).map(toLink);
}

function toLink(stored: StoredEntry | store.PrunedLink): AuditLink {
  if ('digest' in stored) return { seq: stored.seq, hash: stored.hash, digest: stored.digest, entry: null };
  const entry: AuditEntry = toAuditEntry(stored);
  return { seq: store.seqOf(stored), hash: stored.chain_hash ?? '', digest: digestEntry(entry), entry };
}
