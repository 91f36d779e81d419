/**
 * Runs inside the control plane's host: `node churner.ts URL PASSWORD_FILE NETWORK` changes one
 * thing of the network after another, all that an administrator and hosts can change, until its
 * input ends. Each second it writes how many changes were taken.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between two changes. */
const everyMs = 200;
/** Peers of the network, more or less. */
const crowd = 30;
/** Of all names the resolver has these, see churn.ts; the others are always new. */
const names = ['a', 'b', 'c', 'd'].map((each) => `edge-${each}.example.net`);

interface Member {
  readonly id: number;
  readonly type: 'origin' | 'connector';
}

const [url = '', passwordFile = '', networkId = ''] = process.argv.slice(2);
const path = `/api/networks/${networkId}`;
const password = readFileSync(passwordFile, 'utf8');
const login = await send<{ access_token: string }>('POST', '/api/auth/login', { email: 'owner@example.net', password });
const members: Member[] = [];
const routes: string[] = ['10.128.0.0/24'];
let enrolment = { token: '', uses: 0 };
let count = 0;

const changes: readonly (() => Promise<unknown>)[] = [
  enrol,
  () => patch({ endpoint: `198.18.${count & 255}.${(count >> 8) & 255}:51820` }),
  moveRoutes,
  () => patch({ name: `renamed-${count}` }),
  () => patch({ endpoint: `${names[count % names.length]}:51820` }),
  leave,
  () => patch({ endpoint: `edge-${count}.example.net:51820` }),
  () => patch({ public_key: newKey() }),
  () => patch({ endpoint: null }),
  () => send('PATCH', path, { description: `change ${count}` }),
];

process.stdin.on('end', () => process.exit()).resume();
while (members.length < crowd) await enrol();
setInterval(() => process.stdout.write(`${count}\n`), 1000);
for (;;) {
  const change = changes[count % changes.length];
  await change?.();
  count += 1;
  await delay(everyMs);
}

async function enrol(): Promise<void> {
  if (enrolment.uses === 0) {
    const key = { name: `key ${count}`, max_uses: 10 };
    const made = await send<{ enrollment_token: string }>('POST', `${path}/enrollment-keys`, key);
    enrolment = { token: made.enrollment_token, uses: key.max_uses };
  }
  enrolment.uses -= 1;
  // Two of them are connectors, and stay.
  const type = members.length < 2 ? 'connector' : 'origin';
  const name = `${type}-${count}-${members.length}`;
  const wanted = { enrollment_token: enrolment.token, name, peer_type: type, public_key: newKey() };
  const { peer } = await send<{ peer: { id: number } }>('POST', '/api/networks/enroll', wanted, {
    'idempotency-key': randomBytes(16).toString('hex'),
  });
  members.push({ id: peer.id, type });
}

async function leave(): Promise<void> {
  const [left] = members.splice(2, 1);
  if (left) await send('DELETE', `${path}/peers/${left.id}`);
}

/**
 * A prefix that never was before comes, another one goes, and one of the connectors serves half of
 * them.
 */
async function moveRoutes(): Promise<void> {
  routes.push(`10.${129 + ((count >> 8) % 100)}.${count & 255}.0/24`);
  if (routes.length > 10) routes.shift();
  await send('PATCH', path, { routes });
  await send('PATCH', `${path}/peers/${members[0]?.id}`, { routes: routes.slice(routes.length / 2) });
}

function patch(change: object): Promise<unknown> {
  const member = members[2 + (count % (members.length - 2))];
  return send('PATCH', `${path}/peers/${member?.id}`, change);
}

function newKey(): string {
  return randomBytes(32).toString('base64');
}

async function send<Reply>(method: string, where: string, json?: object, more: object = {}): Promise<Reply> {
  const bearer = where === '/api/auth/login' ? {} : { authorization: `Bearer ${login.access_token}` };
  const reply = await fetch(`${url}${where}`, {
    method,
    headers: { ...(json && { 'content-type': 'application/json' }), ...bearer, ...more },
    ...(json && { body: JSON.stringify(json) }),
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${where} was answered ${reply.status}: ${text}`);
  return JSON.parse(text).data;
}
