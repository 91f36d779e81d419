import type { Socket } from 'node:net';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { type DatabaseTarget, tlsOptions } from './database-url.ts';
import { notAnswering, translate } from './errors.ts';

/** PostgreSQL accepts 100 by default: enough for several replicas with ten and a listener each. */
const connections = 10;

/** Ends a request that the database delays before the request's own deadline of 30 s. */
const patience = {
  connectionTimeoutMillis: 10_000,
  // Ends a query on a dead connection. Its outcome is unknown.
  query_timeout: 20_000,
};

/** Session settings that the driver does not set, and that a connection pooler passes on. */
type Settings = Readonly<Record<string, string>>;
const impatience: Settings = {
  statement_timeout: '15s',
  // A process that is suspended within a transaction must not block all others.
  idle_in_transaction_session_timeout: '30s',
};

/** The kernel detects a dead idle connection 5 s after the last packet from it (tcp(7)). */
const keepAlive = { afterMs: 2_000, everyMs: 1_000, count: 3 };

/** When an idle connection is checked before reuse: age of its last reply, and time limit. */
export interface Trust {
  readonly forMs: number;
  readonly patienceMs: number;
}
const usualTrust: Trust = { forMs: 1_000, patienceMs: 2_000 };

/** The time limit for connections to close cleanly. */
const farewellMs = 2_000;

export function connectionConfig(target: DatabaseTarget): pg.ClientConfig {
  const { host, port, database, user, password } = target;
  return {
    ...{ host, port, database, ssl: tlsOptions(target) },
    ...(user !== undefined && { user }),
    // Without it, the driver reads PGPASSWORD and ~/.pgpass.
    ...(password !== undefined && { password: password.reveal() }),
    application_name: 'cpn-control-plane',
    connectionTimeoutMillis: patience.connectionTimeoutMillis,
    types: { getTypeParser },
  };
}

export class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    // A query on a broken connection fails anyway. Without a listener, this ends the process.
    this.on('error', () => undefined);
  }

  /** Closes the connection immediately, even if the other end is gone. */
  drop(): void {
    this.#stream().destroy();
  }

  /** True if the server answers in time. Otherwise the connection is unusable. */
  answersWithin(patienceMs: number): Promise<boolean> {
    const question: pg.QueryConfig & { query_timeout: number } = { text: 'select 1', query_timeout: patienceMs };
    return this.query(question).then(
      () => true,
      () => false,
    );
  }

  /** The driver's internal stream, which its own pool relies on too to end a connection. */
  #stream(): Socket {
    return (this as unknown as { readonly connection: { readonly stream: Socket } }).connection.stream;
  }

  /** Connects, and closes the connection if the login fails. The driver would leave it open. */
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

export function createPool(target: DatabaseTarget, trust: Trust = usualTrust): PostgresPool {
  const onConnect = (client: pg.ClientBase) => settle(client, impatience);
  const limits = { ...patience, max: connections, idleTimeoutMillis: 30_000 };
  return adapt(new pg.Pool({ Client, ...connectionConfig(target), ...limits, onConnect }), trust);
}

/** A single connection without time limits: to wait for another process's migration, or migrate. */
export function createPatientPool(target: DatabaseTarget): PostgresPool {
  const onConnect = (client: pg.ClientBase) => settle(client, {});
  return adapt(new pg.Pool({ Client, ...connectionConfig(target), max: 1, onConnect }), usualTrust);
}

function adapt(pool: pg.Pool, { forMs, patienceMs }: Trust): PostgresPool {
  // The pool replaces a broken idle connection. Without a listener, this ends the process.
  pool.on('error', () => undefined);
  const clients = new Set<pg.PoolClient>();
  pool.on('connect', (client) => clients.add(client)).on('remove', (client) => clients.delete(client));
  /** When each idle connection last answered. */
  const idle = new Map<pg.PoolClient, number>();
  pool
    .on('release', (_error, client) => idle.set(client, performance.now()))
    .on('remove', (client) => idle.delete(client));
  const dropped = new WeakSet<pg.PoolClient>();
  /**
   * If one connection is dead, drops all idle ones: one cause cut them all, and each check is
   * slow.
   */
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
      // A dead connection never ends without this.
      const late = setTimeout(() => {
        for (const client of clients) asOurs(client).drop();
      }, farewellMs);
      await pool.end().finally(() => clearTimeout(late));
    },
  };
}

/** The pool creates its connections from the class that it receives. */
function asOurs(client: pg.PoolClient): Client {
  return client as unknown as Client;
}

/** Overrides settings that can lose a commit, or that change the isolation of transactions. */
async function settle(client: pg.ClientBase, settings: Settings): Promise<void> {
  const given = Object.entries({ default_transaction_isolation: 'read committed', ...settings });
  await client.query(
    `select ${given.map(([name, value]) => `set_config('${name}', '${value}', false)`).join(', ')},
      case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end`,
  );
}

/** A connection that the pool lends to Kysely. A failed connection is not reused. */
function lend(client: pg.PoolClient): PostgresPoolClient {
  let inTransaction = false;
  let failure: unknown;
  const query = async (sql: string, parameters: readonly unknown[]) => {
    // The rollback after a failure would hide its meaning: a commit may have succeeded.
    if (failure !== undefined) throw failure;
    const [word = ''] = /\w+/.exec(sql) ?? [];
    // A commit makes a change permanent. Outside a transaction, each statement does.
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
    // Kysely streams nothing here, so it calls this only with text.
    query: query as unknown as PostgresPoolClient['query'],
    release: (destroy = false) => client.release(destroy || failure !== undefined),
  };
}

const reading = ['select', 'begin', 'start', 'rollback', 'show'];

/** All integers here are far below 2^53. */
function getTypeParser(type: number, format?: 'text' | 'binary') {
  return type === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(type, format as 'text');
}
