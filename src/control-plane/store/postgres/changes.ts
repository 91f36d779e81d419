import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { StoreEvents, Topic } from '../store.ts';
import type { Db } from '../tables.ts';
import type { DatabaseTarget } from './database-url.ts';
import { Client, connectionConfig } from './pool.ts';

/** How a dead connection is detected. */
interface Keepalive {
  /** The time between two queries. */
  readonly everyMs: number;
  /** The timeout of a query. */
  readonly patienceMs: number;
}

interface Listening {
  readonly target: DatabaseTarget;
  readonly name: string;
  readonly events: StoreEvents;
  readonly keepalive: Keepalive;
  readonly signal: AbortSignal;
}

/** Receives the changes that other processes commit. */
export interface Listener {
  /** The sender in the announcements of this process, which it ignores itself. */
  readonly name: string;
  close(): Promise<void>;
}

/** Notifies all processes of a change of this network when the transaction commits. */
export async function announce(transaction: Db, from: string, network: number, topic: Topic): Promise<void> {
  await sql`select pg_notify(${channels[topic]}, ${`${from} ${network}`})`.execute(transaction);
}

/**
 * Listens on its own connection, and reconnects when it is lost. After a reconnection it reports all networks as changed, because it may
 * have missed changes. It listens when this returns. The first connection is tried once.
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

/** A process of an earlier version listens to the first one alone. */
const channels: Readonly<Record<Topic, string>> = { map: 'cpn_network_changed', health: 'cpn_health_changed' };
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
      events.notifyAll();
    } catch (error) {
      failures += 1;
      events.lost(error instanceof Error ? error.message : String(error));
    }
  }
}

async function connect({ target, name, events, keepalive }: Listening): Promise<Client> {
  const client = new Client({ ...connectionConfig(target), query_timeout: keepalive.patienceMs });
  client.on('notification', ({ channel, payload = '' }) => {
    const [, from, network] = /^(\S+) ([1-9][0-9]{0,14})$/.exec(payload) ?? [];
    if (network !== undefined && from !== name)
      events.notify(Number(network), channel === channels.health ? 'health' : 'map');
  });
  try {
    await client.connect();
    for (const channel of Object.values(channels)) await client.query(`listen ${channel}`);
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
