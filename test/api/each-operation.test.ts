import { describe, expect, test } from 'vitest';
import { type AdminService, connectAdminService } from '../../src/api/admin-service.ts';
import type { operations } from '../../src/api/operations.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { WrongUsage } from '../../src/core/errors/index.ts';
import { failureOf, networkBody, peerBody, unhurried } from './samples.ts';
import { type Asked, bytes, hungUp, json, type Reply, serve } from './server.ts';

type Name = keyof typeof operations;

/** What an administrator may do, and what of the service's conduct makes a difference to it. */
interface Row {
  readonly input: readonly unknown[];
  /** What the service replies, in its `data`. */
  readonly data: unknown;
  /** The verb and the path, with the ids in it encoded. */
  readonly request: string;
  /** True for a list in pages, which are read to the last one. */
  readonly isList?: true;
  /** True for what each service has: a page with a 404 is of something in front of it. */
  readonly isInContract?: true;
  /** What a service without an extension is not even asked for, and where the extension is described. */
  readonly undescribed?: { readonly value: null | readonly []; readonly place: keyof typeof places };
  /** What is said, or returned, where the service has no such operation. */
  readonly absent: RegExp | null;
}

const suspended = { content: { 'application/json': { schema: { properties: { suspended: {} } } } } };
const places = {
  health: ['/api/networks/{id}/health', { get: {} }],
  removals: ['/api/networks/{id}/removals', { get: {} }],
  events: ['/api/networks/{id}/events', { get: {} }],
  ownDevices: ['/api/networks/{id}/own-devices', { post: {} }],
  suspension: ['/api/networks/{id}/peers/{id}', { patch: { requestBody: suspended } }],
} as const;

const at = '2026-03-01T12:00:00.000Z';
const password = new Secret('password-sample');
const user = { id: 3, email: 'a@example.net', role: 'viewer', created_at: at };
const key = { id: 5, name: 'k', max_uses: 1, uses: 0, expires_at: at };
const token = { id: 4, name: 'ci', created_at: at, expires_at: null, last_used_at: null };
const [net, peer] = ['a/b', '9?c'];
const [network, peers] = ['/api/networks/a%2Fb', '/api/networks/a%2Fb/peers/9%3Fc'];
const keyList = `${network}/enrollment-keys`;
const newKey = { name: 'k', max_uses: 1, expires_in_hours: 1 };
const ids = (list: string) => new RegExp(`"cpn ${list}" lists the ids`);
const cannot = (what: string) => new RegExp(`this service cannot ${what}`);
const offers = (what: string) => new RegExp(`the service offers no ${what}; ask its operator`);
const noRules = cannot('restrict who reaches what');
const rules = { mode: 'open', rules: [], tests: [], require_enforcement: false, enforcement: [], warnings: [] };
const preview = {
  gained: [],
  lost: [],
  gained_count: 0,
  lost_count: 0,
  complete: true,
  tests: [],
  enforcement: [],
  refused: [],
  warnings: [],
};
const { peers: _, ...summary } = networkBody();

const rows: Readonly<Record<Name, Row>> = {
  logout: { input: [], data: null, request: 'POST /api/auth/logout', absent: ids('network list') },
  profile: { input: [], data: null, request: 'GET /api/auth/me', absent: ids('network list') },
  listNetworks: {
    ...{ input: [], data: [summary], request: 'GET /api/networks', isList: true, isInContract: true },
    absent: ids('network list'),
  },
  readNetwork: {
    ...{ input: [net], data: networkBody(), request: `GET ${network}`, isInContract: true },
    absent: ids('network list'),
  },
  createNetwork: {
    input: [{ name: 'n', private_cidr: '10.77.0.0/16' }],
    ...{ data: summary, request: 'POST /api/networks', absent: ids('network list') },
  },
  updateNetwork: { input: [net, {}], data: summary, request: `PATCH ${network}`, absent: cannot('change networks') },
  deleteNetwork: { input: [net], data: null, request: `DELETE ${network}`, absent: ids('network list') },
  createKey: {
    input: [net, newKey],
    ...{ data: { ...key, enrollment_token: 'cpn_x' }, request: `POST ${keyList}`, absent: ids('network list') },
  },
  listKeys: { input: [net], data: [key], request: `GET ${keyList}`, isList: true, absent: cannot('list keys') },
  revokeKey: { input: [net, 5], data: null, request: `DELETE ${keyList}/5`, absent: cannot('revoke keys') },
  listPeersOut: {
    ...{ input: [net], data: [peerBody(1)], request: `GET ${network}/peers?suspended=true`, isList: true },
    ...{ undescribed: { value: [], place: 'suspension' }, absent: ids('network list') },
  },
  listOwnedPeers: {
    ...{ input: [net], data: [peerBody(1)], request: `GET ${network}/peers?owned=true`, isList: true },
    ...{ undescribed: { value: [], place: 'ownDevices' }, absent: ids('network list') },
  },
  createOwnDevice: {
    input: [net, {}],
    data: { id: 5, enrollment_token: 'cpn_x', expires_at: at, network: { id: 7, name: 'n' } },
    ...{ request: `POST ${network}/own-devices`, absent: cannot('enrol own devices') },
  },
  updatePeer: { input: [net, peer, {}], data: peerBody(1), request: `PATCH ${peers}`, absent: cannot('change peers') },
  approvePeer: {
    ...{ input: [net, peer], data: peerBody(1), request: `POST ${peers}/approve` },
    absent: cannot('approve peers'),
  },
  removePeer: { input: [net, peer], data: null, request: `DELETE ${peers}`, absent: ids('network list') },
  readHealth: {
    ...{ input: [net], data: { peers: [] }, request: `GET ${network}/health` },
    ...{ undescribed: { value: null, place: 'health' }, absent: ids('network list') },
  },
  readRemovals: {
    ...{ input: [net, 0], data: { pending: [] }, request: `GET ${network}/removals` },
    ...{ undescribed: { value: null, place: 'removals' }, absent: ids('network list') },
  },
  readEvents: { input: [net], data: [], request: `GET ${network}/events`, absent: ids('network list') },
  readRules: { input: [net], data: rules, request: `GET ${network}/rules`, absent: noRules },
  setRules: { input: [net, { mode: 'open' }, '"1"'], data: rules, request: `PUT ${network}/rules`, absent: noRules },
  previewRules: {
    ...{ input: [net, { mode: 'open' }], data: preview, request: `POST ${network}/rules/preview` },
    absent: noRules,
  },
  confirmRules: { input: [net], data: rules, request: `POST ${network}/rules/confirm`, absent: noRules },
  explainRules: {
    input: [net, { from: 'peer:a b', to: 'any', protocol: 'tcp', port: 22 }],
    data: { from: 'peer:a b', to: 'any', protocol: 'tcp', verdict: 'deny', rule: null, why: 'no rule', points: [] },
    request: `GET ${network}/rules/why?from=peer%3Aa+b&to=any&protocol=tcp&port=22`,
    absent: noRules,
  },
  listUsers: {
    ...{ input: [], data: [user], request: 'GET /api/users', isList: true },
    absent: offers('administration of users'),
  },
  createUser: {
    input: [{ email: user.email, password, role: 'viewer' }],
    ...{ data: user, request: 'POST /api/users', absent: offers('administration of users') },
  },
  updateUser: { input: [peer, {}], data: user, request: 'PATCH /api/users/9%3Fc', absent: cannot('change users') },
  deleteUser: { input: [peer], data: null, request: 'DELETE /api/users/9%3Fc', absent: ids('user list') },
  linkUser: {
    ...{ input: [peer, { subject: 's1' }], data: null, request: 'PUT /api/users/9%3Fc/link' },
    absent: cannot('link users'),
  },
  unlinkUser: {
    ...{ input: [peer], data: null, request: 'DELETE /api/users/9%3Fc/link', absent: cannot('link users') },
  },
  resetFactors: {
    ...{ input: [peer], data: null, request: 'DELETE /api/users/9%3Fc/factors' },
    absent: cannot('remove second factors'),
  },
  listUserSessions: {
    ...{ input: [peer], data: [], request: 'GET /api/users/9%3Fc/sessions', absent: cannot('list sessions of users') },
  },
  endUserSessions: {
    input: [peer],
    ...{ data: null, request: 'DELETE /api/users/9%3Fc/sessions', absent: ids('user list') },
  },
  endUserSession: {
    input: [peer, 5],
    ...{ data: null, request: 'DELETE /api/users/9%3Fc/sessions/5', absent: ids('token list --user') },
  },
  changePassword: {
    input: [{ current_password: password, new_password: password }],
    ...{ data: null, request: 'PUT /api/auth/password', absent: offers('change of passwords') },
  },
  listSessions: { input: [], data: [], request: 'GET /api/auth/sessions', absent: null },
  deleteSession: {
    ...{ input: [peer], data: null, request: 'DELETE /api/auth/sessions/9%3Fc' },
    absent: /"cpn token list" lists the sessions/,
  },
  listTokens: {
    ...{ input: [], data: [token], request: 'GET /api/auth/tokens', isList: true },
    absent: offers('personal tokens'),
  },
  createToken: {
    input: [{ name: 'ci' }],
    ...{ data: { ...token, access_token: 't' }, request: 'POST /api/auth/tokens', absent: offers('personal tokens') },
  },
  deleteToken: { input: [peer], data: null, request: 'DELETE /api/auth/tokens/9%3Fc', absent: ids('token list') },
  readAudit: { input: [], data: [], request: 'GET /api/audit', absent: offers('audit') },
  readAuditChain: { input: [], data: [], request: 'GET /api/audit/chain', absent: offers('chain of the audit') },
};
const names = Object.keys(rows) as Name[];
const hint = 'it may have succeeded: check before you repeat it';

/** Describes all extensions that administrators use, but for those at this place. */
function describeBut(place?: keyof typeof places): object {
  const paths = Object.entries(places).flatMap(([name, path]) => (name === place ? [] : [path]));
  return { paths: Object.fromEntries(paths) };
}

/** Makes one call of a service that replies so, and describes these paths. */
async function call(name: Name, replies: readonly Reply[], described = describeBut(), bearer = 't') {
  let answered = 0;
  const { address, asked } = await serve((response, request) => {
    if (request.path.startsWith('/docs/')) return json(200, described)(response, request);
    (replies[answered++] ?? replies.at(-1))?.(response, request);
  });
  const service = connectAdminService(address, bearer === '' ? null : new Secret(bearer), unhurried().options);
  const run = (service[name as keyof AdminService] as (...input: unknown[]) => Promise<unknown>)(...rows[name].input);
  const [outcome] = await Promise.allSettled([run]);
  const isOperation = ({ path }: Asked) => !path.startsWith('/docs/');
  return { run, outcome, asked: asked.filter(isOperation), requests: asked.length };
}

const done = (name: Name) => json(200, { data: rows[name].data });
const page = bytes(404, '<html>', { 'content-type': 'text/html' });

describe.each(names)('%s', (name) => {
  const { data, request, isList = false, isInContract = false, undescribed, absent } = rows[name];
  const isOnce = /^(POST|PUT) /.test(request);

  test('is one request with the token, and with its ids in the path', async () => {
    const { outcome, asked } = await call(name, [done(name)]);
    expect(outcome.status).toBe('fulfilled');
    expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([request]);
    expect(asked[0]?.headers.authorization).toBe('Bearer t');
  });

  test('each operation needs a login', async () => {
    const { run, asked } = await call(name, [done(name)], describeBut(), '');
    expect(await failureOf(run)).toBeInstanceOf(WrongUsage);
    expect(asked).toEqual([]);
  });

  test(`is ${isOnce ? 'not ' : ''}sent again after a reply that was lost`, async () => {
    const { run, asked } = await call(name, [hungUp, done(name)]);
    expect(asked).toHaveLength(isOnce ? 1 : 2);
    if (isOnce) expect((await failureOf(run)).message).toContain(hint);
    else await run;
  });

  test(`that finds nothing after a lost reply is ${request.startsWith('DELETE') ? 'done' : 'not done'}`, async () => {
    if (isOnce || absent === null) return;
    const { outcome, run } = await call(name, [hungUp, json(404, {})]);
    if (request.startsWith('DELETE')) expect(outcome.status).toBe('fulfilled');
    else expect(await failureOf(run)).toMatchObject({ name: 'Refused', status: 404, repeated: true });
  });

  test(`is read ${isList ? 'to its last page' : 'from one reply'}`, async () => {
    const first = json(200, { data: rows[name].data, links: { next: '?page=2' } });
    const { outcome, asked } = await call(name, [first, done(name)]);
    expect([outcome.status, asked.length]).toEqual(['fulfilled', isList ? 2 : 1]);
    if (isList && outcome.status === 'fulfilled') expect(outcome.value).toHaveLength(2);
  });

  test('of a service without the operation ends with what to do, or without', async () => {
    for (const status of [404, 405]) {
      const { run } = await call(name, [json(status, {})]);
      if (absent === null) expect(await run).toBeNull();
      else if (status === 404) expect((await failureOf(run)).message).toMatch(absent);
      else expect(await failureOf(run)).toMatchObject({ name: 'Refused', status });
    }
  });

  test(`with a page in place of a reply is ${isInContract ? 'an interception' : 'what the service lacks'}`, async () => {
    const { run } = await call(name, [page]);
    if (absent === null) expect(await run).toBeNull();
    else expect((await failureOf(run)).name).toBe(isInContract ? 'Intercepted' : 'Refused');
  });

  test(`${undescribed === undefined ? 'needs no description' : 'is not asked for without its description'}`, async () => {
    if (undescribed === undefined) {
      const { asked, requests } = await call(name, [done(name)], { paths: {} });
      return expect([asked.length, requests]).toEqual([1, 1]);
    }
    const { run, asked, requests } = await call(name, [done(name)], describeBut(undescribed.place));
    expect([await run, asked.length, requests]).toEqual([undescribed.value, 0, 1]);
  });

  test(`${data === null ? 'is done' : 'is not done'} by a reply without content`, async () => {
    const { outcome } = await call(name, [(response) => response.writeHead(204).end()]);
    expect(outcome.status).toBe(data === null ? 'fulfilled' : 'rejected');
  });
});

test.each<[Name, number, string]>([
  ['updateNetwork', 409, 'nothing was changed; run it again, or use --add-route and --remove-route'],
  ['setRules', 412, 'the rules were changed meanwhile, and nothing was changed now; run it again'],
  ['updatePeer', 409, 'read the present state, and repeat the change if it is still needed'],
  ['changePassword', 403, 'correct it, and try again'],
  ['createUser', 403, 'your role does not allow it; ask an owner or an admin'],
  ['createUser', 422, 'check the values of the command'],
  ['readAudit', 401, 'sign in again with "cpn login"'],
])('%s that is refused with %i says: %s', async (name, status, remedy) => {
  const { run } = await call(name, [json(status, {})]);
  expect((await failureOf(run)).message).toContain(`; ${remedy}`);
});
