import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely } from 'kysely';
import type pg from 'pg';
import { inject } from 'vitest';
import { migrate } from '../../src/control-plane/store/migrations/migrate.ts';
import { parseDatabaseUrl } from '../../src/control-plane/store/postgres/database-url.ts';
import { createPatientPool } from '../../src/control-plane/store/postgres/pool.ts';
import { postgresDialect } from '../../src/control-plane/store/postgres/store.ts';
import { durable, openSqlite, sqliteDialect } from '../../src/control-plane/store/sqlite/sqlite.ts';
import { openStore } from '../../src/control-plane/store/sqlite/store.ts';
import type { Tables } from '../../src/control-plane/store/tables.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { eventually } from '../lab/eventually.ts';
import { memory } from '../lab/memory.ts';
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
  const name = nameDatabase();
  await asSuperuser(postgres, (client) => client.query(`create database ${name}`));
  return name;
}

const nameDatabase = () => `cpn_${randomBytes(6).toString('hex')}`;

/** Gives a folder, or the database that stands in for it, the tables of a new control plane: a copy costs less than a hundred statements. */
export async function copyTables(dataDir: string): Promise<void> {
  if (postgres === null) {
    migratedFile ??= migrateFile();
    return writeFileSync(join(dataDir, 'control-plane.db'), await migratedFile, { mode: 0o600 });
  }
  migratedDatabase ??= migrateDatabase();
  const name = nameDatabase();
  const create = `create database ${name} template ${await migratedDatabase} strategy file_copy`;
  await asSuperuser(postgres, (client) => client.query(create));
  databases.set(dataDir, name);
  copies.add(name);
}

/** A database with tables and nothing in them, made once in a process: the file of SQLite, and the name at PostgreSQL. */
let migratedFile: Promise<Buffer> | undefined;
let migratedDatabase: Promise<string> | undefined;
/** Names of databases that are copies of it: a test that needs an empty one gets none of them. */
const copies = new Set<string>();

async function migrateFile(): Promise<Buffer> {
  const folder = mkdtempSync(join(memory, 'cpn-migrated-'));
  try {
    await (await openStore(folder)).close();
    return readFileSync(join(folder, 'control-plane.db'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function migrateDatabase(): Promise<string> {
  const folder = 'the database to copy';
  const url = await databaseFor(folder);
  await withDatabase(folder, migrate);
  return new URL(url?.reveal() ?? '').pathname.slice(1);
}

/** Removes a folder, and empties the database that stands in for it, for the next; a copy goes. */
export async function removeData(dataDir: string): Promise<void> {
  rmSync(dataDir, { recursive: true, force: true });
  const name = await databases.get(dataDir);
  if (postgres === null || name === undefined) return;
  databases.delete(dataDir);
  if (copies.delete(name)) {
    await asSuperuser(postgres, (client) => client.query(`drop database ${name} with (force)`));
    return;
  }
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
