import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeThings } from '../credentials.ts';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane, withDatabase } from '../harness.ts';
import { connectRaw, refusalIn } from '../raw.ts';
import { type Rule, rules, type Things } from './routes/access-rules.ts';

let plane: Plane;
let owner: string;
let things: Things;
beforeAll(async () => {
  plane = await openPlane({ limits: { requests: 1_000_000 } });
  owner = await plane.signIn('owner');
  things = await makeThings(plane);
});
afterAll(() => closePlane(plane));

const password = 'a long enough password';
let made = 0;

interface Holder {
  readonly user: number;
  readonly session: string;
  readonly token: string;
}

/** An owner with a password, a session and a personal token. */
async function makeHolder(): Promise<Holder> {
  const body = { email: `holder-${++made}@example.net`, password, role: 'owner' };
  const user = (await plane.call('POST', '/api/users', { token: owner, body })).body.data.id;
  const session = (await plane.call('POST', '/api/auth/login', { body })).body.data.access_token;
  const token = await plane.call('POST', '/api/auth/tokens', { token: session, body: { name: 'ci' } });
  return { user, session, token: token.body.data.access_token };
}

/** Sends a request up to its body, which waits; the control plane has authenticated it. */
async function hold(method: string, path: string, token: string, body: object) {
  const text = JSON.stringify(body);
  const raw = await connectRaw(plane.url);
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${text.length}`,
    'Expect: 100-continue',
    'Connection: close',
  ];
  raw.send(`${head.join('\r\n')}\r\n\r\n`);
  await raw.until('100 Continue\r\n\r\n');
  // The reply comes before the credential is read; other requests come after it.
  for (let times = 0; times < 3; times += 1) await plane.call('GET', '/api/auth/me', { token: owner });
  return {
    async finish() {
      raw.send(text);
      return refusalIn((await raw.ended()).replace('HTTP/1.1 100 Continue\r\n\r\n', ''));
    },
  };
}

const past = '2020-01-01T00:00:00.000Z';
const inDatabase = (work: Parameters<typeof withDatabase<unknown>>[1]) => withDatabase(plane.dataDir, work);

/** What ends a credential of a user while its request is under way. */
const ends: Readonly<
  Record<
    string,
    { by: 'session' | 'token'; status: number | 'beyond its limit'; end(holder: Holder): Promise<unknown> }
  >
> = {
  'a session that ended': {
    by: 'session',
    status: 401,
    end: ({ user }) => inDatabase((db) => db.deleteFrom('sessions').where('user_id', '=', user).execute()),
  },
  'a session that expired': {
    by: 'session',
    status: 401,
    end: ({ user }) =>
      inDatabase((db) => db.updateTable('sessions').set({ expires_at: past }).where('user_id', '=', user).execute()),
  },
  'a token that was revoked': {
    by: 'token',
    status: 401,
    end: ({ user }) => inDatabase((db) => db.deleteFrom('personal_tokens').where('user_id', '=', user).execute()),
  },
  'a token that expired': {
    by: 'token',
    status: 401,
    end: ({ user }) =>
      inDatabase((db) =>
        db.updateTable('personal_tokens').set({ expires_at: past }).where('user_id', '=', user).execute(),
      ),
  },
  'a session of a user that was removed': {
    by: 'session',
    status: 401,
    end: ({ user }) => plane.call('DELETE', `/api/users/${user}`, { token: owner }),
  },
  'a session of an owner who is a viewer by now': {
    by: 'session',
    status: 403,
    end: ({ user }) => plane.call('PATCH', `/api/users/${user}`, { token: owner, body: { role: 'viewer' } }),
  },
  'a session of an owner who is an admin without a network by now': {
    by: 'session',
    status: 'beyond its limit',
    end: ({ user }) =>
      plane.call('PATCH', `/api/users/${user}`, { token: owner, body: { role: 'admin', networks: [] } }),
  },
  'a token that is limited to no network by now': {
    by: 'token',
    status: 'beyond its limit',
    end: ({ user }) =>
      inDatabase((db) =>
        db.updateTable('personal_tokens').set({ networks: '[]' }).where('user_id', '=', user).execute(),
      ),
  },
};

/** The status beyond a limit; null for what a limited caller may do with its own account. */
function statusBeyond(name: string, by: 'session' | 'token'): number | null {
  if (name.includes('{network}')) return 404;
  const isOwn = by === 'session' ? name.includes(' /api/auth/') : name === 'POST /api/auth/logout';
  return isOwn ? null : 403;
}

/** A preview changes nothing. */
const changes = Object.entries(rules).filter(
  ([name, { anyone }]) => !name.startsWith('GET ') && !name.endsWith('/preview') && !anyone,
);

function requestOf(name: string, rule: Rule) {
  const [method = '', template = ''] = name.split(' ');
  const passwords = { current_password: password, new_password: `${password}, another` };
  const body = name === 'PUT /api/auth/password' ? passwords : (rule.body?.(things) ?? {});
  return { method, path: rule.path?.(things) ?? template, body };
}

const newestEntry = async () => (await plane.call('GET', '/api/audit?limit=1', { token: owner })).body.data[0].id;

const ofUsers = changes
  .filter(([, { roles }]) => roles?.includes('owner'))
  .flatMap(([name, rule]) =>
    Object.entries(ends)
      // Each of them may do this as a viewer too.
      .filter(
        ([, { by, status }]) =>
          !(by === 'token' && rule.sessionOnly) && !(status === 403 && rule.roles?.includes('viewer')),
      )
      .map(([what, end]) => ({
        ...{ name, rule, what, ...end },
        status: end.status === 'beyond its limit' ? statusBeyond(name, end.by) : end.status,
      }))
      .filter(({ status }) => status !== null),
  );

test.each(ofUsers)('$name changes nothing by $what while the body is held', async ({ name, rule, by, status, end }) => {
  const holder = await makeHolder();
  const { method, path, body } = requestOf(name, rule);
  const held = await hold(method, path, holder[by], body);
  await end(holder);
  const before = await newestEntry();
  expect(await held.finish()).toMatchObject({ status });
  expect(await newestEntry()).toBe(before);
});

const ofPeers = changes
  .filter(([, { peer }]) => peer === 'self')
  .flatMap(([name, rule]) => [
    { name, rule, what: 'removed', status: 401 },
    { name, rule, what: 'suspended', status: 403 },
  ]);

test.each(ofPeers)('$name changes nothing by a peer that was $what meanwhile', async ({ name, rule, what, status }) => {
  const network = await makeNetwork(plane, owner);
  const { peer, access_token } = (await enroll(plane, await makeKey(plane, owner, network))).body.data;
  const [method = ''] = name.split(' ');
  const path = rule.path?.({ ...things, network, peer: peer.id }) ?? '';
  const held = await hold(method, path, access_token, rule.body?.(things) ?? {});
  const of = `/api/networks/${network}/peers/${peer.id}`;
  if (what === 'removed') await plane.call('DELETE', of, { token: owner });
  else await plane.call('PATCH', of, { token: owner, body: { suspended: true } });
  const before = await newestEntry();
  expect(await held.finish()).toMatchObject({ status });
  expect(await newestEntry()).toBe(before);
});
