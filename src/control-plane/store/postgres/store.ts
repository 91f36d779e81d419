import {
  type DataTypeNode,
  Kysely,
  PostgresDialect,
  type PostgresPool,
  PostgresQueryCompiler,
  type QueryCompiler,
  sql,
} from 'kysely';
import type { Secret } from '../../../core/crypto/secret.ts';
import { WrongUsage } from '../../../core/errors/index.ts';
import { UnusableDatabase } from '../../errors.ts';
import type { ControlPlaneStore, StoreEvents } from '../database.ts';
import { migrate } from '../migrations/migrate.ts';
import type { Db, Tables } from '../tables.ts';
import { AnnouncedChanges } from './announced-changes.ts';
import { announce, type ListenerEvents, listen, notifyBy } from './changes.ts';
import { type DatabaseTarget, parseDatabaseUrl } from './database-url.ts';
import { explainStart } from './errors.ts';
import { createPatientPool, createPool } from './pool.ts';

/** Opens a PostgreSQL database, which other processes may use too, and migrates its tables. */
export async function openPostgres(url: Secret, events: StoreEvents): Promise<ControlPlaneStore> {
  const target = parseDatabaseUrl(url);
  if (await prepare(target)) events.openToOthers(target.database);
  const db = new Kysely<Tables>({ dialect: postgresDialect(createPool(target)) });
  const changes = new AnnouncedChanges(db, events);
  let isListening = true;
  const noting: ListenerEvents = {
    notify: (network, topic) => changes.note(network, topic),
    notifyAll: () => {
      isListening = true;
      events.notifyAll();
    },
    lost: (reason) => {
      isListening = false;
      events.lost(reason);
    },
  };
  const listener = await listen(target, noting, notifyBy(db)).catch(async (error) => {
    await db.destroy();
    throw explainStart(error, target);
  });
  const close = async () => {
    await listener.close();
    await changes.stop();
    await db.destroy();
  };
  return {
    db,
    close,
    announce: (transaction, network, topic) => announce(transaction, listener.name, network, topic),
    isListening: () => isListening,
  };
}

/** Does not migrate. @throws UnusableDatabase if no control plane has served from it yet */
export async function withExistingPostgres<Result>(url: Secret, work: (db: Db) => Promise<Result>): Promise<Result> {
  const target = parseDatabaseUrl(url);
  return withPatience(target, async (db) => {
    if (await hasTables(db)) return work(db);
    const remedy = 'check its name; "cpn control-plane serve" makes its tables and the first owner';
    throw new UnusableDatabase(target.redactedUrl, 'no control plane served from it yet', remedy, false);
  });
}

async function hasTables(db: Db): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select to_regclass('users') is not null as found`.execute(db);
  return rows[0]?.found === true;
}

/**
 * Checks and migrates the database. If several processes start at once, one migrates and the others
 * wait. True if roles without any right in the database may connect to it.
 */
async function prepare(target: DatabaseTarget): Promise<boolean> {
  return withPatience(target, async (db) => {
    const unfit = describeUnfit(await readServer(db));
    if (unfit) throw new UnusableDatabase(target.redactedUrl, ...unfit);
    await migrate(db);
    // Without the right to read the roles, there is no warning.
    return isOpenToOthers(db).catch(() => false);
  });
}

/** True if PUBLIC may connect and another role that is not a superuser can log in. */
async function isOpenToOthers(db: Db): Promise<boolean> {
  const { rows } = await sql<{ open: boolean }>`
    select has_database_privilege('public', current_database(), 'connect') and exists (
      select from pg_roles where rolcanlogin and not rolsuper and rolname <> current_user
    ) as open`.execute(db);
  return rows[0]?.open === true;
}

async function withPatience<Result>(target: DatabaseTarget, work: (db: Db) => Promise<Result>): Promise<Result> {
  const db = new Kysely<Tables>({ dialect: postgresDialect(createPatientPool(target)) });
  try {
    return await work(db);
  } catch (error) {
    const isExplained = error instanceof WrongUsage || error instanceof UnusableDatabase;
    throw isExplained ? error : explainStart(error, target);
  } finally {
    await db.destroy();
  }
}

export interface ServerFacts {
  /** PostgreSQL's version number: 150012 is 15.12. */
  readonly version: number;
  readonly encoding: string;
  readonly readOnly: string;
}

/** Returns a server's problem, remedy, and whether it may pass; null for a usable server. */
export function describeUnfit({ version, encoding, readOnly }: ServerFacts): readonly [string, string, boolean] | null {
  if (version < oldest * 10_000) {
    const remedy = `upgrade it to PostgreSQL ${oldest} or newer`;
    return [`the server is PostgreSQL ${Math.floor(version / 10_000)}, which is too old`, remedy, false];
  }
  if (encoding !== 'UTF8')
    return [`its encoding is ${encoding}`, 'make one with createdb --encoding UTF8 --template template0', false];
  if (readOnly === 'on') return ['it is read-only', 'name the primary server, not a standby', true];
  return null;
}

/** The oldest version that the PostgreSQL project supported when this was written. */
const oldest = 14;

async function readServer(db: Db): Promise<ServerFacts> {
  const setting = (name: string) => sql<string>`current_setting(${sql.lit(name)})`;
  const { version, encoding, readOnly } = await db
    .selectNoFrom([
      setting('server_version_num').as('version'),
      setting('server_encoding').as('encoding'),
      setting('transaction_read_only').as('readOnly'),
    ])
    .executeTakeFirstOrThrow();
  return { version: Number(version), encoding, readOnly };
}

/** Kysely's PostgreSQL dialect with types that give migrations the same meaning as in SQLite. */
export function postgresDialect(pool: PostgresPool): PostgresDialect {
  return new SharedPostgresDialect({ pool });
}

class SharedPostgresDialect extends PostgresDialect {
  override createQueryCompiler(): QueryCompiler {
    return new SharedPostgresQueryCompiler();
  }
}

/** SQLite's integers have 64 bits, and its ids increment automatically. */
class SharedPostgresQueryCompiler extends PostgresQueryCompiler {
  protected override visitDataType(node: DataTypeNode): void {
    this.append(node.dataType === 'integer' ? 'bigint' : node.dataType);
  }

  protected override getAutoIncrement(): string {
    return 'generated by default as identity';
  }
}
