import type { Socket } from 'node:net';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { type DatabaseTarget, tlsOptions } from './database-url.ts';
import { notAnswering, translate } from './postgres-errors.ts';

/** PostgreSQL takes 100 connections unless it is told otherwise: room for several replicas with ten, and a listener, each. */
const connections = 10;

/** What becomes of a request that the database keeps waiting: it ends before its own deadline of 30 s. */
const patience = {
  connectionTimeoutMillis: 10_000,
  // Ends a query whose connection is dead although nobody said so; nothing can be known of it then.
  query_timeout: 20_000,
};

/** What a session of the database is told, in what is not the driver's to do, and a pooler in between passes on. */
type Settings = Readonly<Record<string, string>>;
const impatience: Settings = {
  statement_timeout: '15s',
  // A process that was suspended within a transaction must not keep all others waiting.
  idle_in_transaction_session_timeout: '30s',
};

/** How long closing waits for connections to end well. */
const farewellMs = 2_000;

/** How to connect to a database, for a pool or a single connection. */
export function connectionConfig(target: DatabaseTarget): pg.ClientConfig {
  const { host, port, database, user, password } = target;
  return {
    ...{ host, port, database, ssl: tlsOptions(target) },
    ...(user !== undefined && { user }),
    // Without it the driver looks at PGPASSWORD and ~/.pgpass.
    ...(password !== undefined && { password: password.reveal() }),
    application_name: 'cpn-control-plane',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: patience.connectionTimeoutMillis,
    types: { getTypeParser },
  };
}

/** One connection, as the pool makes them and the listener has it. */
export class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    // Whoever uses a connection that broke is told; nobody else needs to know, and without a listener it would end the process.
    this.on('error', () => undefined);
  }

  /** Ends the connection at once, also one whose other end is gone. */
  drop(): void {
    // Of the driver's parts, this is the one that its own pool relies on for the same.
    (this as unknown as { readonly connection: { readonly stream: Socket } }).connection.stream.destroy();
  }

  /** Where the driver leaves a connection open that it could not log in on, this one closes it. */
  override connect(): Promise<this>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<this> | undefined {
    const connecting = super.connect().catch((error: Error) => {
      this.drop();
      throw error;
    });
    if (callback === undefined) return connecting.then(() => this);
    connecting.then(() => callback(undefined as unknown as Error), callback);
    return undefined;
  }
}

/** The connections on which requests are answered. */
export function createPool(target: DatabaseTarget): PostgresPool {
  const onConnect = (client: pg.ClientBase) => settle(client, impatience);
  const limits = { ...patience, max: connections, idleTimeoutMillis: 30_000 };
  return adapt(new pg.Pool({ Client, ...connectionConfig(target), ...limits, onConnect }));
}

/** A single connection that waits as long as it takes: for another process that migrates, and for its own migrations. */
export function createPatientPool(target: DatabaseTarget): PostgresPool {
  const onConnect = (client: pg.ClientBase) => settle(client, {});
  return adapt(new pg.Pool({ Client, ...connectionConfig(target), max: 1, onConnect }));
}

function adapt(pool: pg.Pool): PostgresPool {
  // As with a connection in use, that one which was idle broke matters to nobody.
  pool.on('error', () => undefined);
  const clients = new Set<pg.PoolClient>();
  pool.on('connect', (client) => clients.add(client)).on('remove', (client) => clients.delete(client));
  return {
    options: {},
    connect: async () => {
      try {
        return lend(await pool.connect());
      } catch (error) {
        throw notAnswering(error);
      }
    },
    end: async () => {
      // Of those who are not there any more nobody would hear a goodbye.
      const late = setTimeout(() => {
        for (const client of clients) (client as unknown as Client).drop();
      }, farewellMs);
      await pool.end().finally(() => clearTimeout(late));
    },
  };
}

/** Undoes what a database may be set to by which a commit can be lost, or transactions see what they are not written for. */
async function settle(client: pg.ClientBase, settings: Settings): Promise<void> {
  const given = Object.entries({ default_transaction_isolation: 'read committed', ...settings });
  await client.query(
    `select ${given.map(([name, value]) => `set_config('${name}', '${value}', false)`).join(', ')},
      case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end`,
  );
}

/** A connection that the pool lends to Kysely. One that failed is not given back to be used again. */
function lend(client: pg.PoolClient): PostgresPoolClient {
  let inTransaction = false;
  let failure: unknown;
  const query = async (sql: string, parameters: readonly unknown[]) => {
    // The rollback that follows a failure would hide what it means: above all that a commit may have been done.
    if (failure !== undefined) throw failure;
    const [word = ''] = /\w+/.exec(sql) ?? [];
    // A change is kept by the commit; outside a transaction, by its own statement.
    const isDecisive = word === 'commit' || !(inTransaction || reading.includes(word));
    if (word === 'begin' || word === 'start') inTransaction = true;
    if (word === 'commit' || word === 'rollback') inTransaction = false;
    try {
      return await client.query(sql, [...parameters]);
    } catch (error) {
      const translated = translate(error, isDecisive);
      if (translated !== error) failure = translated;
      throw translated;
    }
  };
  return {
    // Kysely streams nothing here, so it calls this with text alone.
    query: query as unknown as PostgresPoolClient['query'],
    release: (destroy = false) => client.release(destroy || failure !== undefined),
  };
}

const reading = ['select', 'begin', 'start', 'rollback', 'show'];

/** All integers here are far below 2^53. */
function getTypeParser(type: number, format?: 'text' | 'binary') {
  return type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format as 'text');
}
