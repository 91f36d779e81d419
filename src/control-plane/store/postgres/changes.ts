import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { StoreEvents, Topic } from '../database.ts';
import type { Db } from '../tables.ts';
import type { DatabaseTarget } from './database-url.ts';
import { Client, connectionConfig } from './pool.ts';

/** Detects a connection without notifications: dead, or behind a pooler that shares it. */
interface Keepalive {
  /** The time between two notifications of this process to itself. */
  readonly everyMs: number;
  /** The time limit for sending one, and then for a silence without any notification. */
  readonly patienceMs: number;
  /** The time limit for the first one on a connection. */
  readonly firstPatienceMs: number;
}

/** Sends a notification through the connections that {@link announce} uses. */
export type Notify = (channel: string, payload: string) => Promise<unknown>;

interface ListenOptions {
  readonly target: DatabaseTarget;
  readonly name: string;
  readonly events: ListenerEvents;
  readonly notify: Notify;
  readonly keepalive: Keepalive;
  readonly signal: AbortSignal;
}

/** What a listener reports. Any role that can connect to the database may send notifications. */
export type ListenerEvents = Pick<StoreEvents, 'notify' | 'notifyAll' | 'lost'>;

export interface ChangeListener {
  /** The sender in the announcements of this process. The listener ignores them. */
  readonly name: string;
  close(): Promise<void>;
}

/** Notifies all processes of a change of this network when the transaction commits. */
export async function announce(transaction: Db, from: string, network: number, topic: Topic): Promise<void> {
  await sql`select pg_notify(${channels[topic]}, ${`${from} ${network}`})`.execute(transaction);
}

const usualKeepalive: Keepalive = { everyMs: 2_500, patienceMs: 2_500, firstPatienceMs: 5_000 };

/** Sends each notification as a separate statement. */
export const notifyBy =
  (db: Db): Notify =>
  (channel, payload) =>
    sql`select pg_notify(${channel}, ${payload})`.execute(db);

/** The effect of a pooler in transaction mode: LISTEN succeeds, but no notification arrives. */
const notDelivered = 'notifications do not arrive (LISTEN, NOTIFY), as behind a pooler in transaction mode';

/**
 * Reconnects its dedicated connection when lost, and then reports all networks as changed: changes
 * may have been missed. Returns after the first notification. The first connection is not retried.
 */
export async function listen(
  target: DatabaseTarget,
  events: ListenerEvents,
  notify: Notify,
  keepalive: Keepalive = usualKeepalive,
): Promise<ChangeListener> {
  const name = randomUUID();
  const end = new AbortController();
  const listening = { target, name, events, notify, keepalive, signal: end.signal };
  const running = keepListening(listening, await connect(listening));
  return {
    name,
    close: async () => {
      end.abort();
      await running;
    },
  };
}

/** A process of an earlier version listens to only some of these channels. */
const channels: Readonly<Record<Topic, string>> = {
  map: 'cpn_network_changed',
  health: 'cpn_health_changed',
  messages: 'cpn_peer_messages',
};
/** The name of a process is a UUID. The id of a network has at most 15 digits. */
const longestPayload = 36 + 1 + 15;
const topics = new Map(Object.entries(channels).map(([topic, channel]) => [channel, topic as Topic]));
const shortestPauseMs = 100;
const longestPauseMs = 5_000;

async function keepListening(listening: ListenOptions, first: Client): Promise<void> {
  const { events, signal } = listening;
  let client: Client | null = first;
  for (let failures = 0; !signal.aborted; ) {
    if (client !== null) {
      const reason = await untilLost(client, listening);
      client = null;
      if (!signal.aborted) events.lost(reason);
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

async function connect(listening: ListenOptions): Promise<Client> {
  const { target, name, events, keepalive, signal } = listening;
  const client = new Client({ ...connectionConfig(target), query_timeout: keepalive.patienceMs });
  client.on('notification', ({ channel, payload = '' }) => {
    if (payload.length > longestPayload) return;
    const [, from, network] = /^(\S+) ([1-9][0-9]{0,14})$/.exec(payload) ?? [];
    const topic = topics.get(channel);
    if (network !== undefined && topic !== undefined && from !== name) events.notify(Number(network), topic);
  });
  const ended = new AbortController();
  client.once('end', () => ended.abort());
  const either = AbortSignal.any([ended.signal, signal]);
  try {
    await client.connect();
    for (const channel of [...Object.values(channels), ownChannel(name)]) await client.query(`listen ${channel}`);
    const { isSent, arrived } = await notifyOwn(client, listening, keepalive.firstPatienceMs, either);
    if (arrived) return client;
    // A restarted server must not be reported as a pooler in transaction mode. A retry helps.
    if (either.aborted) throw new Error(connectionEnded);
    throw new Error(isSent ? notDelivered : 'no notification can be sent');
  } catch (error) {
    client.drop();
    throw error;
  }
}

/** Resolves with the reason for the loss, or on abort, after it has closed the connection. */
async function untilLost(client: Client, listening: ListenOptions): Promise<string> {
  const { keepalive, signal } = listening;
  const ended = new AbortController();
  client.once('end', () => ended.abort());
  const either = AbortSignal.any([ended.signal, signal]);
  try {
    for (;;) {
      await pause(keepalive.everyMs, either);
      if (either.aborted) return connectionEnded;
      const { isSent, arrived } = await notifyOwn(client, listening, keepalive.patienceMs, either);
      if (arrived) continue;
      if (isSent) return either.aborted ? connectionEnded : notDelivered;
      // The pool has the problem, and requests report it. This connection may be intact.
      await client.query('select 1');
    }
  } catch {
    return connectionEnded;
  } finally {
    client.drop();
  }
}

const connectionEnded = 'the connection ended';

/** The factor by which a queued notification may be late. On a new connection it comes last. */
const queuePatience = 4;

/** Only this process listens to this channel. */
const ownChannel = (name: string) => `cpn_listener_${name.replaceAll('-', '')}`;

/**
 * Sends a nonce through the pool. Nothing is sent on the listener's connection meanwhile: behind a
 * pooler, a query could flush notifications that would not arrive otherwise.
 */
async function notifyOwn(client: Client, { name, notify }: ListenOptions, patienceMs: number, signal: AbortSignal) {
  const [channel, nonce] = [ownChannel(name), randomUUID()];
  const arrival = Promise.withResolvers<true>();
  let lastAt = performance.now();
  const receive = (message: { readonly channel: string; readonly payload?: string | undefined }) => {
    lastAt = performance.now();
    if (message.channel === channel && message.payload === nonce) arrival.resolve(true);
  };
  client.on('notification', receive);
  const done = new AbortController();
  const either = AbortSignal.any([done.signal, signal]);
  const timeout = () => pause(patienceMs, either).then(() => false);
  /** While other notifications arrive, this one is queued behind them. */
  const untilSilent = async (): Promise<false> => {
    const latestAt = performance.now() + queuePatience * patienceMs;
    lastAt = performance.now();
    for (;;) {
      const restMs = Math.min(lastAt + patienceMs, latestAt) - performance.now();
      if (restMs <= 0 || either.aborted) return false;
      await pause(restMs, either);
    }
  };
  const sent = notify(channel, nonce).then(
    () => true,
    () => false,
  );
  try {
    const isSent = await Promise.race([sent, timeout()]);
    return { isSent, arrived: isSent && (await Promise.race([arrival.promise, untilSilent()])) };
  } finally {
    done.abort();
    client.off('notification', receive);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
