/**
 * Runs inside the control plane's host: `node changer.ts URL LOGIN NETWORK CONNECTOR ROUTE` changes
 * the map once a second until it is stopped: peers come, change and go, routes come and go, and
 * CONNECTOR serves other ones; ROUTE stays. Each second it writes how many changes were taken.
 * While the control plane is away it goes on trying.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const everyMs = 1000;
const mostPeers = 8;

const [url = '', login = '', network = '', connector = '', route = ''] = process.argv.slice(2);
const { token } = JSON.parse(readFileSync(login, 'utf8'));
const path = `/api/networks/${network}`;
const peers: number[] = [];
const routes: string[] = [];
let turn = 0;
let taken = 0;

const changes: readonly (() => Promise<unknown>)[] = [
  enrol,
  () => patch({ endpoint: `198.18.${turn & 255}.${(turn >> 8) & 255}:51820` }),
  addRoute,
  () => patch({ name: `renamed-${turn}` }),
  enrol,
  serveOthers,
  () => patch({ public_key: newKey() }),
  removePeer,
  removeRoute,
  () => send('PATCH', path, { description: `change ${turn}` }),
];

for (;;) {
  try {
    await changes[turn % changes.length]?.();
    taken += 1;
  } catch (error) {
    process.stderr.write(`${new Date().toISOString()} ${(error as Error).message}\n`);
  }
  turn += 1;
  process.stdout.write(`${taken}\n`);
  await delay(everyMs);
}

async function enrol(): Promise<void> {
  if (peers.length >= mostPeers) return removePeer();
  const key = await send<{ enrollment_token: string }>('POST', `${path}/enrollment-keys`, { name: `key ${turn}` });
  const { peer } = await send<{ peer: { id: number } }>('POST', '/api/networks/enroll', {
    ...{ enrollment_token: key.enrollment_token, name: `stranger-${turn}`, public_key: newKey() },
  });
  peers.push(peer.id);
}

async function removePeer(): Promise<void> {
  const id = peers.shift();
  if (id !== undefined) await send('DELETE', `${path}/peers/${id}`);
}

async function addRoute(): Promise<void> {
  routes.push(`10.${128 + ((turn >> 8) % 100)}.${turn & 255}.0/24`);
  await send('PATCH', path, { routes: [route, ...routes] });
}

async function removeRoute(): Promise<void> {
  if (routes.length > 4) routes.shift();
  await send('PATCH', path, { routes: [route, ...routes] });
}

/** Another connector serves all routes, so that none is without one. */
async function serveOthers(): Promise<void> {
  const served = routes.filter((_, index) => (index + turn / changes.length) % 2 < 1);
  await send('PATCH', `${path}/peers/${connector}`, { routes: [route, ...served] });
}

async function patch(change: object): Promise<void> {
  const id = peers[turn % Math.max(1, peers.length)];
  if (id !== undefined) await send('PATCH', `${path}/peers/${id}`, change);
}

function newKey(): string {
  return randomBytes(32).toString('base64');
}

async function send<Reply>(method: string, where: string, json?: object): Promise<Reply> {
  const reply = await fetch(`${url}${where}`, {
    ...{ method, signal: AbortSignal.timeout(10_000) },
    headers: { authorization: `Bearer ${token}`, ...(json && { 'content-type': 'application/json' }) },
    ...(json && { body: JSON.stringify(json) }),
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${where} was answered ${reply.status}: ${text}`);
  return text === '' ? (undefined as Reply) : JSON.parse(text).data;
}
