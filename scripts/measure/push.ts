import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'undici';
import { Worker } from './process.ts';
import type { ClientAnswer, ClientOrder, Member, ServerAnswer, ServerOrder } from './push-messages.ts';
import { type Spread, spreadOf } from './spread.ts';

/** One measurement: so many networks of so many peers, all of whom wait, and changes one after another. */
export interface PushCase {
  readonly networks: number;
  /** Of each network. */
  readonly peers: number;
  readonly changes: number;
  /** Those who wait take the changes alone, where the control plane gives them. */
  readonly deltas: boolean;
  /** Those who wait make a new connection each time, as a connector does. */
  readonly reconnect: boolean;
  /** A folder for a profile of the control plane's processor time. */
  readonly profile: string | null;
}

export interface PushResult extends Omit<PushCase, 'profile'> {
  /** Replies that came, of all changes; each change brings one to every peer of its network. */
  readonly replies: number;
  /** How many of them had which status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds from the whole answer to the change until the last byte at each who waits; 0 for one that came before it. */
  readonly delay: Spread;
  /** The same for the last of them, change by change. */
  readonly last: Spread;
  /** Milliseconds that the change itself took, answer included. */
  readonly acknowledged: Spread;
  readonly bytesPerReply: number;
  /** Milliseconds of processor time for a change, all that follows included: replies, and that all wait again. */
  readonly serverCpuMsPerChange: number;
}

const warmUp = 5;
const patienceMs = 120_000;

/** Measures one case on processes of its own. */
export async function measurePush(asked: PushCase): Promise<PushResult> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-bench-'));
  const profiling = asked.profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${asked.profile}`];
  const server = new Worker<ServerOrder, ServerAnswer>('push-server.ts', profiling);
  const clients = new Worker<ClientOrder, ClientAnswer>('push-clients.ts');
  try {
    return await run(asked, folder, server, clients);
  } finally {
    await clients.end();
    await server.end({ kind: 'end' });
    rmSync(folder, { recursive: true, force: true });
  }
}

async function run(
  asked: PushCase,
  folder: string,
  server: Worker<ServerOrder, ServerAnswer>,
  clients: Worker<ClientOrder, ClientAnswer>,
): Promise<PushResult> {
  const { networks, peers, changes, deltas, reconnect } = asked;
  const { url, owner, members } = await server.ask({ kind: 'serve', folder, networks, peers }, 'serving');
  const admin = new Client(url);
  const token = await logIn(admin, owner);
  clients.tell({ kind: 'wait', url, members, deltas, reconnect });
  const rounds: Round[] = [];
  let cpuMs = 0;
  for (let number = 0; number < warmUp + changes; number++) {
    const before = await untilAllWait(server, members.length);
    if (number === warmUp) cpuMs = before;
    // Networks take turns, and in each of them its peers.
    const member = members[((number % networks) * peers + (Math.floor(number / networks) % peers)) % members.length];
    const round = await change(admin, token, member as Member, number, peers, clients);
    if (number >= warmUp) rounds.push(round);
  }
  cpuMs = (await untilAllWait(server, members.length)) - cpuMs;
  await admin.close();
  return { networks, peers, changes, deltas, reconnect, ...summarise(rounds), serverCpuMsPerChange: cpuMs / changes };
}

interface Round {
  readonly acknowledged: number;
  readonly delays: readonly number[];
  readonly bytes: readonly number[];
  readonly statuses: readonly number[];
}

async function change(
  admin: Client,
  token: string,
  { network, peer }: Member,
  number: number,
  replies: number,
  clients: Worker<ClientOrder, ClientAnswer>,
): Promise<Round> {
  await clients.ask({ kind: 'expect', replies }, 'expecting');
  const sent = process.hrtime.bigint();
  await send(
    admin,
    'PATCH',
    `/api/networks/${network}/peers/${peer}`,
    { endpoint: `198.51.100.7:${1024 + number}` },
    token,
  );
  const answered = process.hrtime.bigint();
  const { at, bytes, statuses } = await clients.hear('replies');
  const delays = at.map((instant) => Math.max(0, Number(BigInt(instant) - answered) / 1e6));
  return { acknowledged: Number(answered - sent) / 1e6, delays, bytes, statuses };
}

/** Returns the control plane's processor time by then. */
async function untilAllWait(server: Worker<ServerOrder, ServerAnswer>, count: number): Promise<number> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const { waiting, cpuMs } = await server.ask({ kind: 'look' }, 'looked');
    if (waiting === count) return cpuMs;
    if (performance.now() > deadline) throw new Error(`${waiting} of ${count} wait after ${patienceMs / 1000} s`);
    await delay(5);
  }
}

function summarise(rounds: readonly Round[]) {
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

async function logIn(admin: Client, owner: { email: string; password: string }): Promise<string> {
  const body = (await send(admin, 'POST', '/api/auth/login', owner)) as { data: { access_token: string } };
  return body.data.access_token;
}

async function send(admin: Client, method: 'POST' | 'PATCH', path: string, json: object, token?: string) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  const { statusCode, body } = await admin.request({ method, path, headers, body: JSON.stringify(json) });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${method} ${path} was answered ${statusCode}: ${text}`);
  return JSON.parse(text) as unknown;
}
