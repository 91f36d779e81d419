import { type CompiledQuery, type DatabaseConnection, PostgresDialect, SqliteDialect } from 'kysely';
import { afterAll, onTestFinished } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import { databaseFor, postgres } from './databases.ts';
import { asSuperuser } from './postgres-server.ts';

/** A statement that is held before it runs, or whose answer is. */
export interface Held {
  /** Resolves once the statement is held. */
  readonly reached: Promise<void>;
  release(): void;
}

/** Where a statement is held. */
export type Moment = 'before' | 'after';

/** Sees each statement before it runs; what it throws is the failure of the statement. */
type Observe = (sql: string, parameters: readonly unknown[]) => void;

export interface Statements {
  /** Holds the next statement whose SQL matches; a test that ends releases it. */
  hold(sql: RegExp, moment: Moment): Held;
  /** Until the returned function is called. */
  observe(seen: Observe): () => void;
}

/**
 * Controls the statements of all databases of this process that are opened from now on, until the end of the test file. It is the driver
 * that holds them, so both stores are held alike, and a transaction keeps its connection meanwhile.
 */
export function controlStatements(): Statements {
  const holds = new Set<{ readonly sql: RegExp; readonly moment: Moment; readonly meet: () => Promise<void> }>();
  const observers = new Set<Observe>();
  const meet = async (sql: string, at: Moment) => {
    for (const each of holds) {
      if (each.moment !== at || !each.sql.test(sql)) continue;
      holds.delete(each);
      await each.meet();
    }
  };
  const control = (connection: DatabaseConnection) => {
    if (controlled.has(connection)) return connection;
    controlled.add(connection);
    const execute = connection.executeQuery.bind(connection);
    connection.executeQuery = async <Row>(query: CompiledQuery, ...rest: never[]) => {
      await meet(query.sql, 'before');
      for (const seen of observers) seen(query.sql, query.parameters);
      const result = await execute<Row>(query, ...rest);
      await meet(query.sql, 'after');
      return result;
    };
    return connection;
  };
  const controlled = new WeakSet<DatabaseConnection>();
  for (const { prototype } of [SqliteDialect, PostgresDialect]) {
    const original = prototype.createDriver;
    prototype.createDriver = function (this: SqliteDialect & PostgresDialect) {
      const driver = original.call(this);
      const acquire = driver.acquireConnection.bind(driver);
      driver.acquireConnection = async (...given) => control(await acquire(...given));
      return driver;
    };
    afterAll(() => {
      prototype.createDriver = original;
    });
  }
  return {
    hold(sql, moment) {
      const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const meet = () => {
        reached.resolve();
        return released.promise;
      };
      const held = { sql, moment, meet };
      holds.add(held);
      const release = () => {
        holds.delete(held);
        released.resolve();
      };
      onTestFinished(release);
      return { reached: reached.promise, release };
    },
    observe(seen) {
      observers.add(seen);
      return () => observers.delete(seen);
    },
  };
}

/**
 * Passes once the work has ended, or waits for a lock of the database. In SQLite it waits for the transaction that is held, and for
 * nothing else.
 */
export async function untilStalled(dataDir: string, work: Promise<unknown>): Promise<void> {
  if (postgres === null) return;
  const name = new URL((await databaseFor(dataDir))?.reveal() ?? '').pathname.slice(1);
  let hasEnded = false;
  const end = () => {
    hasEnded = true;
  };
  work.then(end, end);
  // Commits that notify wait for each other too, which is no lock of a row.
  const waiting = `select from pg_stat_activity
    where datname = $1 and wait_event_type = 'Lock' and wait_event in ('transactionid', 'tuple', 'relation')`;
  await asSuperuser(postgres, (client) =>
    eventually(
      'it ends, or waits for a lock',
      async () => hasEnded || (await client.query(waiting, [name])).rowCount !== 0,
      {
        everyMs: 5,
      },
    ),
  );
}
