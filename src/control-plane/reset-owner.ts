import { randomBytes } from 'node:crypto';
import { usualPasswordCost } from './domain/passwords.ts';
import type { ServeOptions } from './serve.ts';
import { type OwnerCredentials, type OwnerReset, resetOwner as reset } from './service/accounts/owner.ts';
import { readDatabaseTime } from './store/database.ts';
import { withExistingDatabase } from './store/sqlite/store.ts';
import type { Db } from './store/tables.ts';

/** Sets an owner's password directly in the database, even while a control plane serves from it. */
export async function resetOwner(
  where: Pick<ServeOptions, 'dataDir' | 'database' | 'passwordCost'>,
  owner: OwnerCredentials,
  options: { readonly keepsTokens: boolean },
): Promise<OwnerReset & { readonly database: string }> {
  const { passwordCost = usualPasswordCost } = where;
  const work = (db: Db) => reset({ db, readTime: readDatabaseTime, random: randomBytes, passwordCost }, owner, options);
  if (!where.database) return { ...(await withExistingDatabase(where.dataDir, work)), database: where.dataDir };
  const { withExistingPostgres } = await import('./store/postgres/store.ts');
  const { parseDatabaseUrl } = await import('./store/postgres/database-url.ts');
  const { redactedUrl } = parseDatabaseUrl(where.database);
  return { ...(await withExistingPostgres(where.database, work)), database: redactedUrl };
}
