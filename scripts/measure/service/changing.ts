import { setTimeout as delay } from 'node:timers/promises';
import { type Dispatcher, Pool } from 'undici';
import { type Spread, spreadOf } from '../spread.ts';
import type { Worker } from './process.ts';
import type { ClientAnswer, ClientOrder, Member, ServerAnswer, ServerOrder, Used } from './push-messages.ts';

const patienceMs = 120_000;

/** A control plane in a process of its own. */
export type Server = Worker<ServerOrder, ServerAnswer>;
/** Those who wait, in a process of their own. */
export type Clients = Worker<ClientOrder, ClientAnswer>;

/** Who changes things: a session, and the connections for it. */
export interface Admin {
  readonly admin: Dispatcher;
  readonly token: string;
}

/** One change, and all the replies that it brought. */
export interface Round {
  /** Milliseconds until the change was answered. */
  readonly acknowledged: number;
  /**
   * Milliseconds from that answer until the last byte of each reply; 0 for one that came before it.
   */
  readonly delays: readonly number[];
  readonly bytes: readonly number[];
  readonly statuses: readonly number[];
}

/** Processes of clients, and the replies that a change brings to each. */
export type Expected = readonly { readonly clients: Clients; readonly replies: number }[];

/** Changes a peer's endpoint, and receives all replies that the change brings. */
export function change(
  { admin, token }: Admin,
  { network, peer }: Member,
  number: number,
  expected: Expected,
): Promise<Round> {
  const endpoint = `198.51.100.7:${1024 + number}`;
  const path = `/api/networks/${network}/peers/${peer}`;
  return receiveReplies(() => send(admin, 'PATCH', path, { endpoint }, token), expected);
}

/** Makes a change, and receives all replies that it brings, each client process its own. */
export async function receiveReplies(make: () => Promise<unknown>, expected: Expected): Promise<Round> {
  const receiving = expected.filter(({ replies }) => replies > 0);
  for (const { clients, replies } of receiving) await clients.request({ kind: 'expect', replies }, 'expecting');
  const sent = process.hrtime.bigint();
  await make();
  const answered = process.hrtime.bigint();
  const received = await Promise.all(receiving.map(({ clients }) => clients.receive('replies')));
  return {
    acknowledged: Number(answered - sent) / 1e6,
    delays: received.flatMap(({ at }) => at.map((instant) => Math.max(0, Number(BigInt(instant) - answered) / 1e6))),
    bytes: received.flatMap(({ bytes }) => bytes),
    statuses: received.flatMap(({ statuses }) => statuses),
  };
}

/** Returns what the control plane has used by the time that so many wait. */
export async function untilAllWait(server: Server, count: number): Promise<Used> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const used = await server.request({ kind: 'look' }, 'looked');
    if (used.waiting === count) return used;
    if (performance.now() > deadline) throw new Error(`${used.waiting} of ${count} wait after ${patienceMs / 1000} s`);
    await delay(5);
  }
}

/** Those who come to wait at the same time: the door has room for 4096. */
const comingAtOnce = 1000;

/** Lets all of them wait at this control plane, who are the first that do. */
export async function comeToWait(
  server: Server,
  clients: Clients,
  { members, ...how }: Omit<Extract<ClientOrder, { kind: 'wait' }>, 'kind' | 'etags'>,
): Promise<void> {
  const etags = await readETags(how.url, members);
  for (let from = 0; from < members.length; from += comingAtOnce) {
    const coming = members.slice(from, from + comingAtOnce);
    clients.send({ kind: 'wait', members: coming, etags, ...how });
    await untilAllWait(server, from + coming.length);
  }
}

/** What the networks of these are at, by their ids. */
async function readETags(url: string, members: readonly Member[]): Promise<Record<number, string>> {
  const etags: Record<number, string> = {};
  const client = new Pool(url, { connections: 8 });
  for (const { network, token } of members) {
    if (etags[network] !== undefined) continue;
    const headers = { authorization: `Bearer ${token}` };
    const reply = await client.request({ method: 'GET', path: `/api/networks/${network}`, headers });
    await reply.body.dump({ limit: Number.MAX_SAFE_INTEGER });
    etags[network] = String(reply.headers.etag);
  }
  await client.close();
  return etags;
}

/** What some changes brought, in figures. */
export interface Summary {
  /** Replies that came, of all changes. */
  readonly replies: number;
  /** How many of them had which status. */
  readonly statuses: Readonly<Record<string, number>>;
  /**
   * Milliseconds from the whole answer to the change until the last byte at each who waits; 0 for
   * one that came before it.
   */
  readonly delay: Spread;
  /** The same for the last of them, change by change. */
  readonly last: Spread;
  /** Milliseconds that the change itself took, answer included. */
  readonly acknowledged: Spread;
  readonly bytesPerReply: number;
}

export function summarise(rounds: readonly Round[]): Summary {
  const bytes = rounds.flatMap((round) => round.bytes);
  const statuses: Record<string, number> = {};
  for (const status of rounds.flatMap((round) => round.statuses)) statuses[status] = (statuses[status] ?? 0) + 1;
  return {
    replies: bytes.length,
    statuses,
    delay: spreadOf(rounds.flatMap(({ delays }) => delays)),
    last: spreadOf(rounds.map(({ delays }) => Math.max(...delays))),
    acknowledged: spreadOf(rounds.map(({ acknowledged }) => acknowledged)),
    bytesPerReply: bytes.reduce((sum, each) => sum + each, 0) / bytes.length,
  };
}

/** A session of the owner: its token. */
export async function logIn(admin: Dispatcher, owner: { email: string; password: string }): Promise<string> {
  const body = (await send(admin, 'POST', '/api/auth/login', owner)) as { data: { access_token: string } };
  return body.data.access_token;
}

/** Sends a request, and returns the body of the answer, which must be a success. */
export async function send(
  admin: Dispatcher,
  method: 'POST' | 'PATCH' | 'PUT',
  path: string,
  json: object,
  token?: string,
) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  const { statusCode, body } = await admin.request({ method, path, headers, body: JSON.stringify(json) });
  const text = await body.text();
  if (statusCode !== 200 && statusCode !== 201)
    throw new Error(`${method} ${path} was answered ${statusCode}: ${text}`);
  return JSON.parse(text) as unknown;
}
