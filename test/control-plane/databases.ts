import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely } from 'kysely';
import type pg from 'pg';
import { inject } from 'vitest';
import { parseDatabaseUrl } from '../../src/control-plane/store/postgres/database-url.ts';
import { createPatientPool } from '../../src/control-plane/store/postgres/pool.ts';
import { postgresDialect } from '../../src/control-plane/store/postgres/store.ts';
import { durable, openSqlite, sqliteDialect } from '../../src/control-plane/store/sqlite/sqlite.ts';
import type { Tables } from '../../src/control-plane/store/tables.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { eventually } from '../lab/eventually.ts';
import { asSuperuser, urlOf } from './postgres-server.ts';
import type {} from './postgres-setup.ts';

/** The PostgreSQL that stands in for the folders of this run; null where the folders hold the data. */
export const postgres = inject('postgres') ?? null;

/** Names of databases by the folders that they stand in for. */
const databases = new Map<string, string | Promise<string>>();
/** Names of empty databases that tests are done with: a new one costs several times as much. */
const spare: string[] = [];

/** The URL of the database that stands in for a folder, made when it is asked for first; null where the folder itself is used. */
export async function databaseFor(dataDir: string): Promise<Secret | null> {
  if (postgres === null) return null;
  const name = databases.get(dataDir) ?? spare.pop() ?? makeDatabase();
  databases.set(dataDir, name);
  return new Secret(urlOf(postgres, await name));
}

/** Makes an empty database, and gives its name. */
async function makeDatabase(): Promise<string> {
  if (postgres === null) throw new Error('there is no PostgreSQL in this run');
  const name = `cpn_${randomBytes(6).toString('hex')}`;
  await asSuperuser(postgres, (client) => client.query(`create database ${name}`));
  return name;
}

/** Removes a folder, and empties the database that stands in for it, for the next. */
export async function removeData(dataDir: string): Promise<void> {
  rmSync(dataDir, { recursive: true, force: true });
  const name = await databases.get(dataDir);
  if (postgres === null || name === undefined) return;
  databases.delete(dataDir);
  await asSuperuser(postgres, (client) => emptyDatabase(client, name), name);
  spare.push(name);
}

/** Leaves nothing of what was done in the database, or to its settings. */
async function emptyDatabase(client: pg.Client, name: string): Promise<void> {
  const others = 'from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()';
  await client.query(`select pg_terminate_backend(pid, 10000) ${others}`, [name]);
  await client.query('set default_transaction_read_only = off');
  await client.query(`alter database ${name} reset all`);
  await client.query(`drop schema public cascade`);
  await client.query('create schema public authorization pg_database_owner');
  await client.query('grant usage on schema public to public');
}

/** Passes once no control plane that was killed has a connection to the database still, on which a change may be under way. */
export async function untilLeft(dataDir: string): Promise<void> {
  const name = await databases.get(dataDir);
  if (postgres === null || name === undefined) return;
  const others = `select from pg_stat_activity where datname = $1 and application_name = 'cpn-control-plane'`;
  await asSuperuser(postgres, (client) =>
    eventually('no connection is left', async () => (await client.query(others, [name])).rowCount === 0),
  );
}

/** Works on the database of a folder while its control plane runs. */
export async function withDatabase<Result>(
  dataDir: string,
  work: (db: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  const db = new Kysely<Tables>({ dialect: await dialectFor(dataDir) });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

async function dialectFor(dataDir: string) {
  if (postgres === null) return sqliteDialect(openSqlite(join(dataDir, 'control-plane.db'), durable));
  const name = await databases.get(dataDir);
  if (name === undefined) throw new Error(`no control plane was started over ${dataDir}`);
  return postgresDialect(createPatientPool(parseDatabaseUrl(new Secret(urlOf(postgres, name)))));
}
