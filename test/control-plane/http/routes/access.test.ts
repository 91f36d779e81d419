import { afterAll, beforeAll, expect, test } from 'vitest';
import { chainAll } from '../../../../src/control-plane/audit/chain-audit.ts';
import { type Credential, makeCredentials, makeThings } from '../../credentials.ts';
import { closePlane, openPlane, type Plane, withDatabase } from '../../harness.ts';
import { type Rule, rules, type Things } from './access-rules.ts';

let plane: Plane;
let things: Things;
let credentials: Credential[];

beforeAll(async () => {
  plane = await openPlane({ limits: { requests: 1_000_000, failedLogins: 1000, failedEnrollments: 1000 } });
  credentials = await makeCredentials(plane);
  things = await makeThings(plane);
  await withDatabase(plane.dataDir, (db) => chainAll(db, new AbortController().signal));
});
afterAll(() => closePlane(plane));

/** The status that the rules say. */
function expected(operation: string, rule: Rule, { holder }: Credential): number {
  if (rule.anyone) return rule.success;
  if (holder === 'unknown') return 401;
  if ('otherPage' in holder && !operation.startsWith('GET ')) return 403;
  if ('peer' in holder) {
    if (!rule.peer) return 403;
    if (holder.peer === 'stranger') return 404;
    return holder.peer === 'self' || rule.peer === 'network' ? rule.success : 403;
  }
  if (!rule.roles?.includes(holder.role)) return 403;
  if (rule.sessionOnly && holder.byToken) return 403;
  return holder.foreign ? (rule.foreign ?? rule.success) : rule.success;
}

/** Makes one request, and mends what it took away. */
async function ask(operation: string, rule: Rule, credential: Credential) {
  const [method = '', template = ''] = operation.split(' ');
  const { token, headers = {} } = credential;
  const reply = await plane.call(method, rule.path?.(things) ?? template, {
    token: typeof token === 'function' ? token(things) : token,
    ...(rule.body && { body: rule.body(things) }),
    headers,
  });
  if (reply.status < 300 && method === 'DELETE') things = await makeThings(plane);
  if (reply.status < 300 && rule.endsCredential && credential.renew) {
    const renewed = { ...credential, ...(await credential.renew()) };
    credentials = credentials.map((each) => (each === credential ? renewed : each));
  }
  return reply;
}

test('every operation that is served has its rule, and no other', async () => {
  const { body } = await plane.call('GET', '/docs/api/openapi.json');
  const served = Object.entries<object>(body.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(served.sort()).toEqual(Object.keys(rules).sort());
});

test.each(Object.entries(rules))('%s answers each credential as its rule says', async (operation, rule) => {
  // Refusals first: had one of them done anything, who may would not find the thing any more.
  const wantedFrom = (credential: Credential) => expected(operation, rule, credential);
  const inOrder = [...credentials].sort((one, other) => wantedFrom(other) - wantedFrom(one));
  const wrong: object[] = [];
  for (const credential of inOrder) {
    const { status, body } = await ask(operation, rule, credential);
    const refusesInWords = status < 400 || typeof body?.message === 'string';
    const wanted = wantedFrom(credential);
    if (status !== wanted || !refusesInWords) wrong.push({ who: credential.name, wanted, status, body });
  }
  expect(wrong).toEqual([]);
});

test('the matrix has each role in both organizations, by session, token and browser, and peers near and far', () => {
  const live = credentials.filter(({ holder }) => holder !== 'unknown').map(({ name }) => name);
  expect(live).toHaveLength(2 * 4 * (2 + 2) + 6 + 1 + 4);
  const refused = credentials.filter(({ holder }) => holder === 'unknown');
  expect(refused).toHaveLength(1 + 5 + 1 + 2 * 4 * (2 + 4) + 3 + 2);
  expect(new Set(credentials.map(({ name }) => name)).size).toBe(credentials.length);
});

const lists = Object.entries(rules).filter(([name, { roles, path }]) => name.startsWith('GET ') && roles && !path);

test.each(lists)('%s shows another organization nothing of ours', async (operation, rule) => {
  const seenBy = async (name: string) => {
    const credential = credentials.find((each) => each.name === name) ?? expect.unreachable();
    return JSON.stringify((await ask(operation, rule, credential)).body);
  };
  const ours = /canary-network|owner@example\.net/;
  expect(await seenBy('foreign owner')).not.toMatch(ours);
  if (/networks|users|audit/.test(operation)) expect(await seenBy('owner')).toMatch(ours);
});

test('a refusal is given before the body is read', async () => {
  const viewer = await plane.signIn('viewer');
  const refused = await plane.call('POST', '/api/networks', { token: viewer, raw: '{' });
  expect(refused.status).toBe(403);
  expect((await plane.call('POST', '/api/networks', { raw: '{' })).status).toBe(401);
});
