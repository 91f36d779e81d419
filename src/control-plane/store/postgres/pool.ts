import type { Socket } from 'node:net';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { type DatabaseTarget, tlsOptions } from './database-url.ts';
import { notAnswering, translate } from './errors.ts';

/** PostgreSQL accepts 100 connections by default: enough for several replicas with ten each and a listener. */
const connections = 10;

/** What becomes of a request that the database keeps waiting: it ends before its own deadline of 30 s. */
const patience = {
  connectionTimeoutMillis: 10_000,
  // Ends a query on a dead connection; its outcome is unknown.
  query_timeout: 20_000,
};

/** Settings of a session that the driver does not set, and that a connection pooler passes on. */
type Settings = Readonly<Record<string, string>>;
const impatience: Settings = {
  statement_timeout: '15s',
  // A process that was suspended within a transaction must not keep all others waiting.
  idle_in_transaction_session_timeout: '30s',
};

/** So the kernel finds out that the other end of an idle connection is gone, 5 s after it said the last thing (tcp(7)). */
const keepAlive = { afterMs: 2_000, everyMs: 1_000, count: 3 };

/** An idle connection is asked for an answer before it is used again: how long after its last one, and how long that may take. */
export interface Trust {
  readonly forMs: number;
  readonly patienceMs: number;
}
const usualTrust: Trust = { forMs: 1_000, patienceMs: 2_000 };

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
    connectionTimeoutMillis: patience.connectionTimeoutMillis,
    types: { getTypeParser },
  };
}

/** One connection, as the pool makes them and the listener has it. */
export class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    // A query on a broken connection fails by itself. Without a listener the event would end the process.
    this.on('error', () => undefined);
  }

  /** Ends the connection at once, also one whose other end is gone. */
  drop(): void {
    this.#stream().destroy();
  }

  /** True when the server answers in time; after a false, the connection is of no use. */
  answersWithin(patienceMs: number): Promise<boolean> {
    const question: pg.QueryConfig & { query_timeout: number } = { text: 'select 1', query_timeout: patienceMs };
    return this.query(question).then(
      () => true,
      () => false,
    );
  }

  /** Of the driver's parts, this is the one that its own pool relies on to end a connection. */
  #stream(): Socket {
    return (this as unknown as { readonly connection: { readonly stream: Socket } }).connection.stream;
  }

  /** Where the driver leaves a connection open that it could not log in on, this one closes it. */
  override connect(): Promise<this>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<this> | undefined {
    const connecting = super.connect().then(
      () => void this.#stream().setKeepAlive(true, keepAlive.afterMs, keepAlive.everyMs, keepAlive.count),
      (error: Error) => {
        this.drop();
        throw error;
      },
    );
    if (callback === undefined) return connecting.then(() => this);
    connecting.then(() => callback(undefined as unknown as Error), callback);
    return undefined;
  }
}

/** The connections on which requests are answered. */
export function createPool(target: DatabaseTarget, trust: Trust = usualTrust): PostgresPool {
  const onConnect = (client: pg.ClientBase) => settle(client, impatience);
  const limits = { ...patience, max: connections, idleTimeoutMillis: 30_000 };
  return adapt(new pg.Pool({ Client, ...connectionConfig(target), ...limits, onConnect }), trust);
}

/** A single connection that waits as long as it takes: for another process that migrates, and for its own migrations. */
export function createPatientPool(target: DatabaseTarget): PostgresPool {
  const onConnect = (client: pg.ClientBase) => settle(client, {});
  return adapt(new pg.Pool({ Client, ...connectionConfig(target), max: 1, onConnect }), usualTrust);
}

function adapt(pool: pg.Pool, { forMs, patienceMs }: Trust): PostgresPool {
  // A broken idle connection is replaced; without a listener the event would end the process.
  pool.on('error', () => undefined);
  const clients = new Set<pg.PoolClient>();
  pool.on('connect', (client) => clients.add(client)).on('remove', (client) => clients.delete(client));
  /** When those that no request uses were last heard of. */
  const idle = new Map<pg.PoolClient, number>();
  pool
    .on('release', (_error, client) => idle.set(client, performance.now()))
    .on('remove', (client) => idle.delete(client));
  const dropped = new WeakSet<pg.PoolClient>();
  /** Whatever has cut one idle connection has cut the others: they are not to be asked one after another. */
  const isAlive = async (client: pg.PoolClient): Promise<boolean> => {
    const heard = idle.get(client);
    idle.delete(client);
    if (dropped.has(client)) return false;
    const asked = performance.now();
    if (heard === undefined || asked - heard < forMs || (await asOurs(client).answersWithin(patienceMs))) return true;
    for (const [other, last] of idle) {
      if (last >= asked) continue;
      dropped.add(other);
      asOurs(other).drop();
    }
    return false;
  };
  return {
    options: {},
    connect: async () => {
      for (;;) {
        const client = await pool.connect().catch((error) => {
          throw notAnswering(error);
        });
        if (await isAlive(client)) return lend(client);
        asOurs(client).drop();
        client.release(true);
      }
    },
    end: async () => {
      // A dead connection never ends by itself.
      const late = setTimeout(() => {
        for (const client of clients) asOurs(client).drop();
      }, farewellMs);
      await pool.end().finally(() => clearTimeout(late));
    },
  };
}

/** The pool makes its connections of the class that it is given. */
function asOurs(client: pg.PoolClient): Client {
  return client as unknown as Client;
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
