import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeThings } from '../../credentials.ts';
import {
  type CallOptions,
  closePlane,
  enroll,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  type Reply,
  startPlane,
  withDatabase,
} from '../../harness.ts';
import { connectRaw } from '../../raw.ts';
import { type OwnThings, type Rule, rules, type Things } from './access-rules.ts';

/** access.test.ts compares these operations with the served description. */
const all = Object.entries(rules);
const operations = all.filter(([, { apart }]) => apart === undefined);
const reads = operations.filter(([operation]) => operation.startsWith('GET '));
const unsafe = operations.filter(([operation]) => !operation.startsWith('GET '));
const minute = 60_000;
const unlimited = { requests: 1_000_000, failedLogins: 1000, failedEnrollments: 1000, userChanges: 1_000_000 };

let plane: Plane;
let things: Things;
let root: string;
let made = 0;

beforeAll(async () => {
  plane = await openPlane({ limits: { ...unlimited, peerReports: 1000, peerChanges: 1000 } });
  root = await signIn(plane, owner);
  things = await makeThings(plane);
});
afterAll(() => closePlane(plane));

async function signIn({ call }: Pick<Plane, 'call'>, { email, password }: typeof owner): Promise<string> {
  const reply = await call('POST', '/api/auth/login', { body: { email, password } });
  if (reply.status !== 200) throw new Error(`no session: ${JSON.stringify(reply.body)}`);
  return reply.body.data.access_token;
}

/** A new owner, who logged in at this moment. */
interface Caller extends OwnThings {
  readonly token: string;
}

async function makeCaller(): Promise<Caller> {
  made += 1;
  const [email, password] = [`caller-${made}@example.net`, 'a long enough password'];
  const make = { email, password, role: 'owner', current_password: owner.password };
  expect((await plane.call('POST', '/api/users', { token: root, body: make })).status).toBe(201);
  const [other, token] = [await signIn(plane, { email, password }), await signIn(plane, { email, password })];
  const sessions = (await plane.call('GET', '/api/auth/sessions', { token: other })).body.data;
  const { id } = sessions.find(({ is_current }: { is_current: boolean }) => is_current);
  const personal = await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } });
  const key = await plane.call('POST', `/api/networks/${things.network}/own-devices`, { token, body: {} });
  const device = await enroll(plane, key.body.data.enrollment_token, { peer_type: 'admin_device' });
  return {
    email,
    password,
    token,
    session: id,
    personalToken: personal.body.data.id,
    device: device.body.data.peer.id,
  };
}

/** The request of an operation by a user that may do it, or by the peer itself where users may not. */
function requestOf(operation: string, rule: Rule, own: Caller, fields: object = {}) {
  const [method = '', template = ''] = operation.split(' ');
  const path = rule.change?.path?.(things, own) ?? rule.path?.(things) ?? template;
  const make = rule.change?.body ?? rule.body;
  const token = rule.anyone ? undefined : rule.roles?.length === 0 ? things.peerToken : own.token;
  const options: CallOptions = { token, ...(make && { body: { ...make(things, own), ...fields } }) };
  return { method, path, options };
}

async function send(request: ReturnType<typeof requestOf>, more: CallOptions = {}): Promise<Reply> {
  const reply = await plane.call(request.method, request.path, { ...request.options, ...more });
  if (reply.status < 300 && request.method === 'DELETE') things = await makeThings(plane);
  return reply;
}

/** The last entries of the audit, the newest first. */
const readEntries = (most: number) =>
  withDatabase(plane.dataDir, (db) =>
    db.selectFrom('audit_entries').select(['id', 'action']).orderBy('id', 'desc').limit(most).execute(),
  );

/** What a request leaves in the audit. */
async function written(request: ReturnType<typeof requestOf>, more: CallOptions = {}) {
  const [before] = await readEntries(1);
  const { method, path, options } = request;
  const { status, body } = await plane.call(method, path, { ...options, ...more });
  const actions = (await readEntries(5)).filter(({ id }) => id > (before?.id ?? 0)).map(({ action }) => action);
  if (status < 300 && method === 'DELETE') things = await makeThings(plane);
  return { status, body, actions };
}

describe('a change leaves its entry in the audit, and a session of an hour ago is enough unless a password is required', () => {
  test.each(operations.filter(([, { needsMore }]) => !needsMore))('%s', async (operation, rule) => {
    const own = await makeCaller();
    plane.clock.advance(60 * minute);
    root = await signIn(plane, owner);
    let request = requestOf(operation, rule, own);
    if (rule.proof !== undefined) {
      const without = await written(request);
      expect(without).toMatchObject({
        status: 422,
        actions: [],
        body: { errors: { [rule.proof]: expect.anything() } },
      });
      const guess = await written(requestOf(operation, rule, own, { [rule.proof]: 'wrong' }));
      expect(guess).toMatchObject({ status: 403, actions: ['password.refused'] });
      request = requestOf(operation, rule, own, { [rule.proof]: own.password });
    }
    const { status, body, actions } = await written(request);
    expect([status < 300, body, actions]).toEqual([true, body, rule.audit === undefined ? [] : [rule.audit]]);
  });
});

test('the description states where a login must be recent, and that alone', async () => {
  const { paths } = (await plane.call('GET', '/docs/api/openapi.json')).body;
  const stated = Object.entries<Record<string, { description?: string }>>(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { description = '' }]) =>
      /login of that session is more than 5 minutes ago/.test(description) ? [`${method.toUpperCase()} ${path}`] : [],
    ),
  );
  expect(stated.sort()).toEqual(all.flatMap(([name, { proof }]) => (proof ? [name] : [])).sort());
});

test('each change but the report of a host, and a confirmation or approval of nothing has an entry, and nothing that reads has one', () => {
  const unaudited = operations.filter(([, { audit }]) => audit === undefined).map(([operation]) => operation);
  const others = ['peers/{peer}/report', 'peers/self/paths', 'rules/preview', 'rules/confirm', 'peers/{peer}/approve'];
  const silent = [
    ...reads.map(([operation]) => operation),
    ...others.map((each) => `POST /api/networks/{network}/${each}`),
    // The factor itself has an entry.
    'POST /api/auth/factors/challenges',
  ];
  expect(unaudited.sort()).toEqual(silent.sort());
});

describe('a body is JSON, as large as is stated, and its unknown fields are ignored', () => {
  test.each(unsafe)('%s', async (operation, rule) => {
    const own = await makeCaller();
    const request = requestOf(operation, rule, own, rule.proof === undefined ? {} : { [rule.proof]: own.password });
    const limit = rule.bodyLimit ?? 64 * 1024;
    const padded = (bytes: number) => ({ raw: `{"padding": "${'x'.repeat(bytes - 15)}"}` });
    const attempts: [CallOptions, number, object][] = [
      [padded(limit + 1), 413, { message: expect.stringContaining('larger than') }],
      [{ raw: '{' }, 422, { errors: { body: ['is not valid JSON'] } }],
      [{ raw: '{}', headers: { 'content-type': 'text/plain' } }, 422, { errors: { body: expect.anything() } }],
      [{ raw: '{}', headers: { 'content-encoding': 'gzip' } }, 415, {}],
    ];
    for (const [more, status, body] of attempts) {
      const refused = await written(request, more);
      expect(refused).toMatchObject({ status, body, actions: [] });
    }
    if (request.options.token !== undefined) {
      expect((await send(request, { ...padded(limit + 1), token: 'cpu_unknown' })).status).toBe(401);
    }
    const fields = { ...Object(request.options.body), is_admin: true, constructor: 'x', padding: '' };
    const padding = 'x'.repeat(limit - JSON.stringify(fields).length);
    const { status } = await send(request, { body: { ...fields, padding } });
    expect(status).toSatisfy((given) => given < 300 || (rule.needsMore === true && given !== 413));
  });
});

describe('what belongs to another network or organization is a 404, as what does not exist is', () => {
  const withIds = operations.filter(([operation, { anyone }]) => operation.includes('{') && !anyone);

  test.each(withIds)('%s', async (operation, rule) => {
    const own = await makeCaller();
    const foreigner = await plane.signIn('owner', await plane.addOrganization(`other-${made}`));
    const [sibling, foreign] = [await makeOthers(root), await makeOthers(foreigner)];
    const request = requestOf(operation, rule, own);
    const [template = ''] = operation.split(' ').slice(1);
    const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    const [path = '', query] = request.path.split('?');
    const ids = Object.fromEntries(names.map((name, at) => [name, readIds(template, path)[at]]));
    const fill = (values: object) => {
      const all: Record<string, unknown> = { ...ids, ...values };
      return template.replace(/\{(\w+)\}/g, (_, name) => String(all[name]));
    };
    const swapped = [sibling, foreign].flatMap((others) =>
      // In a network of the caller, each thing of another one; and in another organization, everything.
      names.flatMap((name) =>
        name in others && (names.length > 1 || others === foreign) ? [{ [name]: others[name] }] : [],
      ),
    );
    const none = names.flatMap((name) =>
      [0, -1, 999_999_999, 2 ** 53, '1e3', '%00', 'x'].map((id) => ({ [name]: id })),
    );
    expect(fill({})).toBe(path);
    for (const values of [...swapped, ...none]) {
      // A peer reads and changes its own network alone, and itself alone.
      const wanted = rule.roles?.length === 0 && 'peer' in values ? [403, 404] : [404];
      const reply = await written({ ...request, path: [fill(values), ...(query ? [query] : [])].join('?') });
      expect([values, wanted.includes(reply.status), reply.actions]).toEqual([values, true, []]);
    }
  });

  const readIds = (template: string, path: string) =>
    new RegExp(`^${template.replace(/\{\w+\}/g, '([^/]+)')}$`).exec(path)?.slice(1) ?? [];

  /** Things of another network, by the names of parameters. */
  async function makeOthers(token: string): Promise<Record<string, number>> {
    const network = await makeNetwork(plane, token);
    const keyToken = await makeKey(plane, token, network);
    const { id: key } = (await plane.call('GET', `/api/networks/${network}/enrollment-keys`, { token })).body.data[0];
    const { id: peer } = (await enroll(plane, keyToken)).body.data.peer;
    const { id: user } = (await plane.call('GET', '/api/auth/me', { token })).body.data;
    const personal = await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } });
    return { network, key, peer, ...(token === root ? {} : { user }), id: personal.body.data?.id ?? 0 };
  }
});

test('a browser with a session is refused at another host, whatever it requests; other clients come by any', async () => {
  const named = await startPlane({ limits: unlimited, publicUrls: [new URL('http://cp.test:8787')] });
  const token = await named.signIn('owner');
  const things = await makeThings(named);
  const request = async (operation: string, rule: Rule, host: string, headers: Record<string, string>) => {
    const [method, template = ''] = operation.split(' ');
    const body = JSON.stringify(rule.body?.(things) ?? {});
    const own = { host, connection: 'close', 'content-type': 'application/json', 'content-length': `${body.length}` };
    const lines = Object.entries({ ...own, ...headers }).map((pair) => pair.join(': '));
    const client = await connectRaw(named.url);
    client.send([`${method} ${rule.path?.(things) ?? template} HTTP/1.1`, ...lines, '', body].join('\r\n'));
    return Number(/^HTTP\/1\.1 (\d{3}) /.exec(await client.ended())?.[1]);
  };
  const wrong: unknown[] = [];
  // Refused first: what is deleted is not there for the next.
  for (const [operation, rule] of operations) {
    const browser = { ...(await named.signInBrowser('owner')), 'sec-fetch-site': 'same-origin' };
    const elsewhere = await request(operation, rule, 'evil.test:8787', browser);
    const byToken = await request(operation, rule, 'evil.test:8787', { authorization: 'Bearer cpu_unknown' });
    // Metrics are for this machine, by a loopback address.
    const anyone = operation === 'GET /metrics' ? 403 : rule.success;
    const wanted = rule.anyone ? [anyone, anyone] : [403, 401];
    if (elsewhere !== wanted[0] || byToken !== wanted[1]) wrong.push({ operation, elsewhere, byToken });
  }
  for (const [operation, rule] of reads) {
    const host = operation === 'GET /metrics' ? '127.0.0.1' : 'cp.test:8787';
    const here = await request(operation, rule, host, await named.signInBrowser('owner'));
    const bearer = await request(operation, rule, operation === 'GET /metrics' ? host : 'evil.test', {
      authorization: `Bearer ${token}`,
    });
    if (here !== rule.success || bearer !== rule.success) wrong.push({ operation, here, bearer });
  }
  expect(wrong).toEqual([]);
});

test('every operation counts as a request of its address, and is refused past the limit', async () => {
  const limited = await startPlane({ limits: { requests: 1 } });
  expect((await limited.call('GET', '/healthz')).status).toBe(200);
  for (const [operation, rule] of operations) {
    const [method = '', template = ''] = operation.split(' ');
    const { status, headers } = await limited.call(method, rule.path?.(things) ?? template);
    expect([operation, status, headers.get('retry-after')]).toEqual([operation, 429, '60']);
  }
});

test('every change counts as one of its user and is refused past the limit, but for removals and the own account', async () => {
  const limited = await startPlane({ limits: { ...unlimited, userChanges: 12 } });
  const token = await limited.signIn('owner');
  let theirs = await makeThings(limited);
  for (let times = 0; times < 12; times += 1) {
    const body = { description: `${times}` };
    expect((await limited.call('PATCH', `/api/networks/${theirs.network}`, { token, body })).status).toBe(200);
  }
  const own = { email: '', password: '', session: 0, personalToken: 0, device: 0 };
  const ofUsers = operations.filter(([, { roles = [] }]) => roles.length > 0);
  const statuses: Record<string, number> = {};
  // Logout is last: the others need the session.
  for (const [operation, rule] of ofUsers.sort(
    ([, one], [, other]) => Number(!!one.endsCredential) - Number(!!other.endsCredential),
  )) {
    const [method = '', template = ''] = operation.split(' ');
    const make = rule.change?.body ?? rule.body;
    const options = { token, ...(make && { body: make(theirs, own) }) };
    statuses[operation] = (await limited.call(method, rule.path?.(theirs) ?? template, options)).status;
    if (method === 'DELETE') theirs = await makeThings(limited);
  }
  const isLimited = (operation: string) => !/^(GET|DELETE) | \/api\/auth\/(?!devices)/.test(operation);
  const refused = Object.keys(statuses).filter((operation) => statuses[operation] === 429);
  expect(refused.sort()).toEqual(Object.keys(statuses).filter(isLimited).sort());
});
