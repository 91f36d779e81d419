import { randomBytes } from 'node:crypto';
import { usualPasswordCost } from './passwords.ts';
import type { ServeOptions } from './serve.ts';
import { type Owner, type OwnerReset, resetOwner as reset } from './service/owner.ts';
import { workBeside } from './store/open-store.ts';
import type { Db } from './store/tables.ts';
import { readDatabaseTime } from './store/time.ts';

/** Gives an owner a new password in the database itself, whether a control plane serves from it or not, and names the database. */
export async function resetOwner(
  where: Pick<ServeOptions, 'dataDir' | 'database' | 'passwordCost'>,
  owner: Owner,
): Promise<OwnerReset & { readonly database: string }> {
  const { passwordCost = usualPasswordCost } = where;
  const work = (db: Db) => reset({ db, readTime: readDatabaseTime, random: randomBytes, passwordCost }, owner);
  if (!where.database) return { ...(await workBeside(where.dataDir, work)), database: where.dataDir };
  const { workBesidePostgres } = await import('./store/postgres-store.ts');
  const { parseDatabaseUrl } = await import('./store/database-url.ts');
  const { shown } = parseDatabaseUrl(where.database);
  return { ...(await workBesidePostgres(where.database, work)), database: shown };
}
