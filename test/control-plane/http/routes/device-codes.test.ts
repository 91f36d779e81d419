import { createHash, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parsePrefix } from '../../../../src/core/net/cidr.ts';
import { closePlane, makeConsole, openPlane, type Plane, startPlane, withDatabase } from '../../harness.ts';

const root = '/api/auth/device-codes';
const minute = 60_000;
const limits = { failedLogins: 1000, failedEnrollments: 1000, userChanges: 100_000 };
const page = makeConsole();
let plane: Plane;
beforeAll(async () => {
  plane = await openPlane({ console: page, proxies: [parsePrefix('127.0.0.1/32')] });
});
afterAll(() => closePlane(plane));
afterAll(() => rmSync(page, { recursive: true }));
// There may be few from one address.
beforeEach(() => withDatabase(plane.dataDir, (db) => db.deleteFrom('device_codes').execute()));

const laptop = '198.51.100.7';
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });

async function start(fields: object = {}, on = plane, address = laptop) {
  const reply = await on.call('POST', root, { body: { device_name: 'laptop', ...fields }, ...from(address) });
  expect([reply.status, reply.body.message]).toEqual([201, undefined]);
  return reply.body.data as { device_code: string; user_code: string } & Record<string, unknown>;
}
const redeem = (device_code: string, fields: object = {}, address = laptop) =>
  plane.call('POST', `${root}/token`, { body: { device_code, ...fields }, ...from(address) });
const decide = (token: string, code: string, body: object = { approve: true }) =>
  plane.call('POST', `${root}/${code}/approval`, { token, body, ...from('192.0.2.1') });
const read = (token: string, code: string) => plane.call('GET', `${root}/${code}`, { token, ...from('192.0.2.1') });
const status = async (token: string) => (await plane.call('GET', '/api/auth/me', { token, ...from(laptop) })).status;
/** A refusal, by its literal. */
const refused = async (reply: ReturnType<typeof redeem>) => {
  const { status, body } = await reply;
  expect(body.message).toEqual(expect.any(String));
  return [status, body.error];
};
const expired = [400, 'expired_token'];

/** A user that has just logged in, with the password. */
async function makeUser(role = 'member') {
  const admin = await plane.signIn('owner');
  const fields = { email: `d-${randomBytes(4).toString('hex')}@example.net`, password: 'a long enough password', role };
  const { id } = (await plane.call('POST', '/api/users', { token: admin, body: fields, ...from('192.0.2.1') })).body
    .data;
  const logIn = async () =>
    (await plane.call('POST', '/api/auth/login', { body: fields, ...from('192.0.2.1') })).body.data
      .access_token as string;
  return { ...fields, id: id as number, admin, logIn, token: await logIn() };
}
const sessionOf = async (token: string) =>
  (await plane.call('GET', '/api/auth/sessions', { token, ...from(laptop) })).body.data.find(
    ({ is_current }: { is_current: boolean }) => is_current,
  );

/** A login by a browser on the same machine: what goes with its start and, with the code of the console, its end. */
function redirect(redirect_port = 4711) {
  const code_verifier = randomBytes(32).toString('base64url');
  const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
  return { start: { code_challenge, redirect_port }, code_verifier };
}

describe('a device code', () => {
  test('gives a session of the user that approves it, once, and is audited and noted like a login', async () => {
    const { id, email, token, admin } = await makeUser();
    const { device_code, user_code, ...rest } = await start();
    expect(user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(rest).toEqual({
      ...{ expires_in: 600, interval: 3, verification_uri: `${plane.url}/#/device` },
      verification_uri_complete: `${plane.url}/#/device/${user_code}`,
    });
    expect(await refused(redeem(device_code))).toEqual([400, 'authorization_pending']);
    expect((await read(token, user_code)).body.data).toEqual({
      ...{ user_code, device_name: 'laptop', address: laptop, same_address: false, redirects: false },
      created_at: plane.clock.now().toISOString(),
      expires_at: new Date(plane.clock.now().getTime() + 10 * minute).toISOString(),
    });
    const typed = user_code.replace('-', '').toLowerCase();
    expect((await decide(token, typed)).body.data).toEqual({ redirect_port: null, code: null });
    const { status: done, body } = await redeem(device_code);
    expect([done, body.data]).toEqual([
      200,
      { access_token: expect.stringMatching(/^cpu_/), token_type: 'Bearer', expires_at: expect.any(String) },
    ]);
    expect(await sessionOf(body.data.access_token)).toMatchObject({ device_name: 'laptop', address: laptop });
    expect(await refused(redeem(device_code))).toEqual(expired);

    const by = (await sessionOf(token)).id;
    const entries = (await plane.call('GET', '/api/audit?limit=3', { token: admin, ...from(laptop) })).body.data;
    expect(entries).toMatchObject([
      // The first login of the user came from another prefix.
      { action: 'login.new_address', actor: { id }, address: laptop },
      {
        ...{ action: 'login', actor: { kind: 'user', id, name: email }, address: laptop },
        target: { kind: 'session', name: 'laptop' },
        details: { method: 'device_code', approved_by_session: by },
      },
      {
        ...{ action: 'login.approve', actor: { id }, address: '192.0.2.1', details: { device_address: laptop } },
        target: { kind: 'session', id: null, name: 'laptop' },
      },
    ]);
    expect(plane.log()).not.toContain(device_code);
  });

  test('of two requests at once, one gets a session', async () => {
    const { token } = await makeUser();
    const { device_code, user_code } = await start();
    await decide(token, user_code);
    const replies = await Promise.all([1, 2, 3].map(() => redeem(device_code)));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
  });

  test('is refused for good, with an entry in the audit', async () => {
    const { id, token, admin } = await makeUser();
    const { device_code, user_code } = await start();
    plane.clock.advance(6 * minute);
    const later = await plane.signIn('viewer');
    expect((await decide(later, user_code, { approve: false })).status).toBe(200);
    expect(await refused(redeem(device_code))).toEqual([400, 'access_denied']);
    expect((await decide(token, user_code)).status).toBe(404);
    expect(await refused(redeem(device_code))).toEqual([400, 'access_denied']);
    const [entry] = (await plane.call('GET', '/api/audit?limit=1', { token: admin, ...from(laptop) })).body.data;
    expect(entry).toMatchObject({ action: 'login.deny', target: { kind: 'session', name: 'laptop' } });
    expect(entry.actor.id).not.toBe(id);
  });

  test('is decided once: another user comes too late', async () => {
    const [one, other] = [await makeUser(), await makeUser()];
    const { user_code } = await start();
    const replies = await Promise.all([decide(one.token, user_code), decide(other.token, user_code)]);
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect((await read(other.token, user_code)).status).toBe(404);
  });

  test('asked for too often is answered with slow_down, and after the interval as before', async () => {
    const { device_code } = await start();
    const poll = () => refused(redeem(device_code));
    expect(await poll()).toEqual([400, 'authorization_pending']);
    plane.clock.advance(1000);
    expect(await poll()).toEqual([400, 'slow_down']);
    plane.clock.advance(3000);
    expect(await poll()).toEqual([400, 'authorization_pending']);
  });

  test('expires after 10 minutes, an approved one after 2, and is then deleted', async () => {
    const { token } = await makeUser();
    const waiting = await start();
    plane.clock.advance(9 * minute);
    const approved = await start();
    expect((await decide(await plane.signIn('member'), approved.user_code)).status).toBe(200);
    plane.clock.advance(minute);
    expect(await refused(redeem(waiting.device_code))).toEqual(expired);
    expect((await decide(token, waiting.user_code)).status).toBe(404);
    plane.clock.advance(minute);
    expect(await refused(redeem(approved.device_code))).toEqual(expired);
    await start();
    const left = await withDatabase(plane.dataDir, (db) => db.selectFrom('device_codes').selectAll().execute());
    expect(left).toHaveLength(1);
  });

  test('is stored as hashes', async () => {
    const { token } = await makeUser();
    const there = redirect();
    const { device_code, user_code } = await start(there.start);
    const { code } = (await decide(token, user_code)).body.data;
    const stored = JSON.stringify(
      await withDatabase(plane.dataDir, (db) => db.selectFrom('device_codes').selectAll().execute()),
    );
    expect(stored).toContain('laptop');
    for (const secret of [device_code, user_code, user_code.replace('-', ''), code, there.code_verifier])
      expect(stored).not.toContain(secret);
  });
});

describe('an approval', () => {
  test('needs a login of the last 5 minutes or the password, like what else outlives a stolen session', async () => {
    const { token, password, admin } = await makeUser();
    plane.clock.advance(6 * minute);
    const { device_code, user_code } = await start();
    const without = await decide(token, user_code);
    expect([without.status, without.body.errors]).toEqual([422, { password: [expect.stringContaining('5 minutes')] }]);
    expect((await decide(token, user_code, { approve: true, password: 'wrong' })).status).toBe(403);
    expect(await refused(redeem(device_code))).toEqual([400, 'authorization_pending']);
    expect((await decide(token, user_code, { approve: true, password })).status).toBe(200);
    expect((await redeem(device_code)).status).toBe(200);
    const audit = (await plane.call('GET', '/api/audit?action=password.refused', { token: admin, ...from(laptop) }))
      .body;
    expect(audit.data).toHaveLength(1);
  });

  test('prolongs no proof: a chain of approvals ends 5 minutes after the login, unless the password is given', async () => {
    const { token, password } = await makeUser();
    const approve = async (by: string, body: object = { approve: true }) => {
      const { device_code, user_code } = await start();
      const decided = await decide(by, user_code, body);
      return decided.status === 200 ? (await redeem(device_code)).body.data.access_token : decided.status;
    };
    plane.clock.advance(4 * minute);
    const second = await approve(token);
    const make = (by: string) =>
      plane.call('POST', '/api/auth/tokens', { token: by, body: { name: 'x' }, ...from(laptop) });
    expect((await make(second)).status).toBe(201);
    plane.clock.advance(2 * minute);
    expect(await approve(second)).toBe(422);
    expect((await make(second)).status).toBe(422);
    const third = await approve(second, { approve: true, password });
    expect((await make(third)).status).toBe(201);
  });

  test('is not for a personal token, and not for a page of another origin', async () => {
    const { token } = await makeUser();
    const { user_code } = await start();
    const made = await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' }, ...from(laptop) });
    const personal = made.body.data.access_token;
    expect([(await read(personal, user_code)).status, (await decide(personal, user_code)).status]).toEqual([403, 403]);
    const browser = await plane.signInBrowser('owner');
    const body = { approve: true };
    const byPage = async (site: string) =>
      (
        await plane.call('POST', `${root}/${user_code}/approval`, {
          body,
          headers: { ...browser, 'sec-fetch-site': site, 'x-forwarded-for': laptop },
        })
      ).status;
    expect([await byPage('cross-site'), await byPage('same-site'), await byPage('same-origin')]).toEqual([
      403, 403, 200,
    ]);
  });

  test.each<[string, (user: Awaited<ReturnType<typeof makeUser>>) => Promise<unknown>]>([
    [
      'the user is removed',
      ({ id, admin }) => plane.call('DELETE', `/api/users/${id}`, { token: admin, ...from(laptop) }),
    ],
    [
      'its sessions are ended',
      ({ id, admin }) => plane.call('DELETE', `/api/users/${id}/sessions`, { token: admin, ...from(laptop) }),
    ],
    ['it logs out', ({ token }) => plane.call('POST', '/api/auth/logout', { token, ...from(laptop) })],
    [
      'its password is changed',
      async ({ logIn, password }) =>
        plane.call('PUT', '/api/auth/password', {
          token: await logIn(),
          body: { current_password: password, new_password: 'another long password' },
          ...from(laptop),
        }),
    ],
  ])('is void after %s', async (_, end) => {
    const user = await makeUser();
    const { device_code, user_code } = await start();
    expect((await decide(user.token, user_code)).status).toBe(200);
    expect(await end(user)).toMatchObject({ status: 200 });
    expect(await refused(redeem(device_code))).toEqual(expired);
  });

  test('gives the role that the user has at the time of each request', async () => {
    const user = await makeUser('admin');
    const { device_code, user_code } = await start();
    await decide(user.token, user_code);
    const change = { token: user.admin, body: { role: 'viewer' }, ...from(laptop) };
    expect((await plane.call('PATCH', `/api/users/${user.id}`, change)).status).toBe(200);
    const { access_token: token } = (await redeem(device_code)).body.data;
    expect((await plane.call('GET', '/api/users', { token, ...from(laptop) })).status).toBe(403);
  });
});

describe('a browser on the same machine', () => {
  test('brings a code to the port, which gives the session with the verifier alone, once', async () => {
    const { token } = await makeUser();
    const there = redirect();
    const { device_code, user_code } = await start(there.start);
    expect((await read(token, user_code)).body.data.redirects).toBe(true);
    const { code_verifier } = there;
    expect(await refused(redeem(device_code, { code: 'guessed', code_verifier }))).toEqual([
      400,
      'authorization_pending',
    ]);
    const { data } = (await decide(token, user_code)).body;
    expect(data).toEqual({ redirect_port: 4711, code: expect.stringMatching(/^cpd_/) });
    const { code } = data;
    // The device code alone is no use to who sent the link to another user.
    for (const wrong of [
      {},
      { code },
      { code_verifier },
      { code: 'guessed', code_verifier },
      { code, code_verifier: redirect().code_verifier },
    ])
      expect(await refused(redeem(device_code, wrong))).toEqual(expired);
    const other = await start(redirect().start);
    expect(await refused(redeem(other.device_code, { code, code_verifier }))).toEqual([400, 'authorization_pending']);
    const opened = await redeem(device_code, { code, code_verifier });
    expect([opened.status, await status(opened.body.data.access_token)]).toEqual([200, 200]);
    expect(await refused(redeem(device_code, { code, code_verifier }))).toEqual(expired);
    expect(plane.log()).not.toContain(code);
  });

  test('brings no code of a refusal', async () => {
    const { token } = await makeUser();
    const { user_code } = await start(redirect().start);
    expect((await decide(token, user_code, { approve: false })).body.data).toEqual({ redirect_port: 4711, code: null });
  });

  test.each([
    [{ redirect_port: 4711 }, 'code_challenge'],
    [{ code_challenge: redirect().start.code_challenge }, 'redirect_port'],
    [{ code_challenge: 'plain', redirect_port: 4711 }, 'code_challenge'],
    [{ ...redirect().start, redirect_port: 0 }, 'redirect_port'],
  ])('needs a challenge and a port: %j', async (body, field) => {
    const { status, body: refusal } = await plane.call('POST', root, { body, ...from(laptop) });
    expect([status, Object.keys(refusal.errors)]).toEqual([422, [field]]);
  });
});

describe('limits', () => {
  test('an address has 20 open codes, and one of its network no more', async () => {
    for (let count = 0; count < 20; count += 1) await start({}, plane, `2001:db8::${count}`);
    const again = await plane.call('POST', root, { body: {}, ...from('2001:db8::ffff') });
    expect([again.status, again.headers.get('retry-after')]).toEqual([429, '60']);
    await start({}, plane, '2001:db8:1::1');
    plane.clock.advance(10 * minute);
    await start({}, plane, '2001:db8::1');
  });

  test('there are 1000 open codes at most', async () => {
    await withDatabase(plane.dataDir, async (db) => {
      const at = plane.clock.now().toISOString();
      const expires_at = new Date(plane.clock.now().getTime() + minute).toISOString();
      const rows = Array.from({ length: 999 }, (_, each) => ({
        ...{
          device_code_hash: `d${each}`,
          user_code_hash: `u${each}`,
          name: '',
          address: `a${each}`,
          origin: `a${each}`,
        },
        ...{ created_at: at, expires_at },
      }));
      for (let first = 0; first < rows.length; first += 100)
        await db
          .insertInto('device_codes')
          .values(rows.slice(first, first + 100))
          .execute();
    });
    await start();
    expect((await plane.call('POST', root, { body: {}, ...from('203.0.113.1') })).status).toBe(429);
    plane.clock.advance(minute);
    await start();
  });

  test('a session guesses as many user codes in a minute as there may be failed logins', async () => {
    const limited = await startPlane({ console: page, limits: { ...limits, failedLogins: 3 } });
    const token = await limited.signIn('owner');
    const other = await limited.signIn('owner');
    const { user_code } = await start({}, limited);
    const paths = [`${root}/BBBB-BBBB`, `${root}/CCCC-CCCC`, `${root}/DDDD-DDDD/approval`];
    for (const path of paths) {
      const [method, body] = path.endsWith('approval') ? ['POST', { approve: true }] : ['GET', undefined];
      expect((await limited.call(method ?? '', path, { token, body })).status).toBe(404);
    }
    expect((await limited.call('GET', `${root}/${user_code}`, { token })).status).toBe(429);
    expect((await limited.call('GET', `${root}/${user_code}`, { token: other })).status).toBe(200);
  });

  test.each(['BCDFGHJ', 'ABCD-EFGH', 'BCDF--GHJK', '....-....', '%00'])('no user code looks like %s', async (code) => {
    expect((await read(await plane.signIn('owner'), code)).status).toBe(404);
  });
});

describe('the link', () => {
  const link = async (on: Plane, headers: Record<string, string> = {}) =>
    (await on.call('POST', root, { body: {}, headers })).body.data?.verification_uri;

  test('is at the host of the request, or behind a proxy at that of the client', async () => {
    expect(
      await link(plane, {
        ...from(laptop).headers,
        'x-forwarded-host': 'cp.example.net',
        'x-forwarded-proto': 'https',
      }),
    ).toBe('https://cp.example.net/#/device');
  });

  test('is at the public address that the request names, else at the first', async () => {
    const publicUrls = [new URL('https://cp.example.net/vpn/'), new URL('https://second.example.net/')];
    const proxies = [parsePrefix('127.0.0.1/32')];
    const named = await startPlane({ console: page, publicUrls, proxies });
    expect(await link(named, from(laptop).headers)).toBe('https://cp.example.net/vpn/#/device');
    const at = { ...from(laptop).headers, 'x-forwarded-host': 'second.example.net', 'x-forwarded-proto': 'https' };
    expect(await link(named, at)).toBe('https://second.example.net/#/device');
  });

  test('is not there without a console', async () => {
    const bare = await startPlane();
    expect((await bare.call('POST', root, { body: {} })).status).toBe(404);
  });
});
