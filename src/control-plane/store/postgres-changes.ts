import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { DatabaseTarget } from './database-url.ts';
import type { StoreEvents } from './open-store.ts';
import { Client, connectionConfig } from './postgres-pool.ts';
import type { Db } from './tables.ts';

/** How a connection is found dead that nobody ended. */
interface Keepalive {
  /** How long nothing is asked. */
  readonly everyMs: number;
  /** How long an answer may take. */
  readonly patienceMs: number;
}

interface Listening {
  readonly target: DatabaseTarget;
  readonly name: string;
  readonly events: StoreEvents;
  readonly keepalive: Keepalive;
  readonly signal: AbortSignal;
}

/** Hears of the changes that other processes commit. */
export interface Listener {
  /** What this process signs its own announcements with, so that it does not take them for another's. */
  readonly name: string;
  close(): Promise<void>;
}

/** Tells all processes that this network is changed, once the transaction is committed, and not when it is rolled back. */
export async function announce(transaction: Db, from: string, network: number): Promise<void> {
  await sql`select pg_notify(${channel}, ${`${from} ${network}`})`.execute(transaction);
}

/**
 * Listens on a connection of its own, which is made anew whenever it is lost; then all is said to have changed, because nothing was
 * heard meanwhile. When this returns, it listens. The first connection is tried once.
 */
export async function listen(
  target: DatabaseTarget,
  events: StoreEvents,
  keepalive: Keepalive = { everyMs: 2_500, patienceMs: 2_500 },
): Promise<Listener> {
  const name = randomUUID();
  const end = new AbortController();
  const listening = { target, name, events, keepalive, signal: end.signal };
  const running = keepListening(listening, await connect(listening));
  return {
    name,
    close: async () => {
      end.abort();
      await running;
    },
  };
}

const channel = 'cpn_network_changed';
const shortestPauseMs = 100;
const longestPauseMs = 5_000;

async function keepListening(listening: Listening, first: Client): Promise<void> {
  const { events, signal } = listening;
  let client: Client | null = first;
  for (let failures = 0; !signal.aborted; ) {
    if (client !== null) {
      await untilLost(client, listening);
      client = null;
      if (!signal.aborted) events.lost('the connection ended');
    }
    const pauseMs = Math.min(shortestPauseMs * 2 ** failures, longestPauseMs);
    await pause(pauseMs * (0.5 + Math.random() / 2), signal);
    if (signal.aborted) return;
    try {
      client = await connect(listening);
      failures = 0;
      events.wakeAll();
    } catch (error) {
      failures += 1;
      events.lost(error instanceof Error ? error.message : String(error));
    }
  }
}

async function connect({ target, name, events, keepalive }: Listening): Promise<Client> {
  const client = new Client({ ...connectionConfig(target), query_timeout: keepalive.patienceMs });
  client.on('notification', ({ payload = '' }) => {
    const [, from, network] = /^(\S+) ([1-9][0-9]{0,14})$/.exec(payload) ?? [];
    if (network !== undefined && from !== name) events.wake(Number(network));
  });
  try {
    await client.connect();
    await client.query(`listen ${channel}`);
    return client;
  } catch (error) {
    client.drop();
    throw error;
  }
}

/** Resolves when the connection is lost, or does not answer any more, or the signal aborts; by then it is closed. */
async function untilLost(client: Client, { keepalive, signal }: Listening): Promise<void> {
  const ended = new AbortController();
  client.once('end', () => ended.abort());
  const either = AbortSignal.any([ended.signal, signal]);
  try {
    while (!either.aborted) {
      await pause(keepalive.everyMs, either);
      if (!either.aborted) await client.query('select 1');
    }
  } catch {
    // No answer is the same as no connection.
  } finally {
    client.drop();
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
