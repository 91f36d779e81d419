import type { AuditEntry } from '../../../contract/audit.ts';
import { widenAddress } from '../../domain/caller.ts';
import * as store from '../../store/accounts/known-prefixes.ts';
import type { Db } from '../../store/tables.ts';
import { type Author, record } from '../audit.ts';

const mostPrefixes = 100;

interface Login {
  readonly userId: number;
  readonly address: string;
  readonly author: Author;
  readonly session: AuditEntry['target'];
  readonly now: Date;
}

/**
 * Records in the audit log that a user opened a session from a prefix that is not among its last
 * 100. The first one is no such notice. The caller has locked the user.
 */
export async function noteAddress(db: Db, { userId, address, author, session, now }: Login): Promise<void> {
  const prefix = widenAddress(address);
  const at = now.toISOString();
  if (prefix === null || (await store.recordPrefixUse(db, userId, prefix, at))) return;
  const known = await store.countPrefixes(db, userId);
  if (known >= mostPrefixes) await store.deleteOldestPrefixes(db, userId, known - mostPrefixes + 1);
  await store.insertPrefix(db, userId, prefix, at);
  if (known === 0) return;
  const details = { prefix, known_prefixes: known };
  await record(db, author, { action: 'login.new_address', target: session, details });
}
