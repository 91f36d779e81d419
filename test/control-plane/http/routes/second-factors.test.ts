import { Secret as Key, TOTP } from 'otpauth';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { NewerDatabase } from '../../../../src/control-plane/errors.ts';
import { migrate } from '../../../../src/control-plane/store/migrations/migrate.ts';
import { migrations, neededMigration } from '../../../../src/control-plane/store/migrations/migrations.ts';
import { parsePrefix } from '../../../../src/core/net/cidr.ts';
import { withDatabase } from '../../databases.ts';
import { closePlane, makeConsole, openPlane, type Plane, startPlane } from '../../harness.ts';
import { type Authenticator, makeAuthenticator } from '../software-authenticator.ts';

let plane: Plane;
let ownerToken: string;
beforeAll(async () => {
  plane = await openPlane({ console: makeConsole(), proxies: [parsePrefix('127.0.0.1/32')] });
});
beforeEach(async () => {
  ownerToken = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const password = 'a long enough password';
const site = { origin: 'https://cp.test', rpId: 'cp.test' };
const minute = 60_000;
let made = 0;

/** The headers of a page of this control plane, at a DNS name over https. */
const pageAt = (host = 'cp.test', protocol = 'https', address = '203.0.113.7') => ({
  'sec-fetch-site': 'same-origin',
  'x-forwarded-for': address,
  'x-forwarded-host': host,
  'x-forwarded-proto': protocol,
});
const page = pageAt();

interface User {
  readonly id: number;
  readonly email: string;
  readonly password: string;
}

async function makeUser(role = 'member', as = ownerToken): Promise<User> {
  const email = `factor-${++made}@example.net`;
  const reply = await plane.call('POST', '/api/users', { token: as, body: { email, password, role } });
  expect(reply.status).toBe(201);
  return { id: reply.body.data.id, email, password };
}

const login = (user: Pick<User, 'email' | 'password'>, headers: Record<string, string> = page) =>
  plane.call('POST', '/api/auth/login', {
    body: { email: user.email, password: user.password, device_name: 'console', session_cookie: '/' },
    headers,
  });
const loginByApi = ({ email, password: word }: User) =>
  plane.call('POST', '/api/auth/login', { body: { email, password: word } });

/** The headers with which a page uses its session. */
function sessionOf({ headers, body }: Awaited<ReturnType<typeof login>>, more = page): Record<string, string> {
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
  expect(body.data.session_key).toBeTypeOf('string');
  return { ...more, cookie, 'session-key': body.data.session_key };
}

const second = (fields: object, headers: Record<string, string> = page) =>
  plane.call('POST', '/api/auth/login/second-factor', { body: { session_cookie: '/', ...fields }, headers });

/** The code that an app shows; at another time for one whose clock is off. */
const codeOf = (secret: string, offsetMs = 0) =>
  new TOTP({ secret: Key.fromBase32(secret) }).generate({ timestamp: plane.clock.now().getTime() + offsetMs });
const wrongCode = (secret: string) => String((Number(codeOf(secret)) + 1) % 1_000_000).padStart(6, '0');

/** Adds an authenticator app, and waits until its next code. */
async function addApp(headers: Record<string, string>, fields: object = {}) {
  const begun = await plane.call('POST', '/api/auth/factors/challenges', {
    body: { kind: 'totp', ...fields },
    headers,
  });
  expect([begun.status, begun.body]).toEqual([201, expect.anything()]);
  const { challenge, secret, uri } = begun.body.data;
  const body = { challenge, name: 'phone', code: codeOf(secret) };
  const added = await plane.call('POST', '/api/auth/factors', { body, headers });
  expect([added.status, added.body]).toEqual([201, expect.anything()]);
  plane.clock.advance(30_000);
  return { secret, uri, ...added.body.data };
}

async function addPasskey(headers: Record<string, string>, authenticator: Authenticator, at = site) {
  const begun = await plane.call('POST', '/api/auth/factors/challenges', { body: { kind: 'passkey' }, headers });
  expect(begun.status).toBe(201);
  const { challenge, passkey: options } = begun.body.data;
  const body = { challenge, name: 'key', passkey: authenticator.create(options, at) };
  return plane.call('POST', '/api/auth/factors', { body, headers });
}

/** A user with an app, its page and its secret. */
async function makeUserWithApp(role = 'member') {
  const user = await makeUser(role);
  const session = sessionOf(await login(user));
  return { user, session, ...(await addApp(session)) };
}

async function makeUserWithPasskey() {
  const user = await makeUser();
  const session = sessionOf(await login(user));
  const authenticator = makeAuthenticator();
  expect((await addPasskey(session, authenticator)).status).toBe(201);
  return { user, session, authenticator };
}

const challengeOf = async (user: User, headers?: Record<string, string>) =>
  (await login(user, headers)).body.data.second_factor;

const factorsOf = async (headers: Record<string, string>) =>
  (await plane.call('GET', '/api/auth/factors', { headers })).body.data;
const isOpen = async (headers: Record<string, string>) =>
  (await plane.call('GET', '/api/auth/me', { headers })).status === 200;

async function auditOf(actions: readonly string[], limit = 5) {
  const { body } = await plane.call('GET', `/api/audit?limit=${limit}`, { token: await plane.signIn('owner') });
  return body.data.filter(({ action }: { action: string }) => actions.includes(action));
}

describe('an authenticator app', () => {
  test('is asked for after the password, and opens the session of the page', async () => {
    const { user, secret, uri, factor, recovery_codes } = await makeUserWithApp();
    expect(uri).toContain(
      `otpauth://totp/cpn%20cp.test:${encodeURIComponent(user.email)}?issuer=cpn%20cp.test&secret=${secret}`,
    );
    expect(factor).toEqual({
      id: expect.any(Number),
      kind: 'totp',
      name: 'phone',
      created_at: expect.any(String),
      last_used_at: null,
    });
    expect(new Set(recovery_codes).size).toBe(10);

    const first = await login(user);
    expect([first.status, first.headers.get('set-cookie')]).toEqual([200, null]);
    expect(first.body.data).toEqual({
      second_factor: {
        challenge: expect.stringMatching(/^cpc_/),
        expires_at: expect.any(String),
        kinds: ['totp'],
        recovery_codes_left: 10,
        passkey: null,
        passkey_hosts: [],
      },
    });
    const { challenge } = first.body.data.second_factor;
    const opened = await second({ challenge, code: codeOf(secret) });
    expect(opened.status).toBe(200);
    const session = sessionOf(opened);
    expect(await isOpen(session)).toBe(true);
    expect(await factorsOf(session)).toEqual({
      factors: [{ ...factor, last_used_at: plane.clock.now().toISOString() }],
      recovery_codes_left: 10,
      passkey_problem: null,
    });
    const [entry] = await auditOf(['login']);
    expect(entry).toMatchObject({
      actor: { id: user.id, name: user.email },
      address: '203.0.113.7',
      target: { kind: 'session', name: 'console' },
      details: { method: 'password+totp' },
    });
  });

  test('is accepted a step early or late, and no more', async () => {
    const { user, secret } = await makeUserWithApp();
    plane.clock.advance(2 * minute);
    const attempt = async (offset: number) =>
      (await second({ challenge: (await challengeOf(user)).challenge, code: codeOf(secret, offset) })).status;
    expect(await attempt(-60_000)).toBe(401);
    expect(await attempt(60_000)).toBe(401);
    expect(await attempt(-30_000)).toBe(200);
    expect(await attempt(0)).toBe(200);
    expect(await attempt(30_000)).toBe(200);
    // The app's clock was ahead, and its code of this moment is of a step before.
    expect(await attempt(0)).toBe(401);
  });

  test('accepts a code once: also for another challenge, and the code that added the app', async () => {
    const user = await makeUser();
    const session = sessionOf(await login(user));
    const { secret } = await addApp(session);
    plane.clock.setBack(30_000);
    const replay = await second({ challenge: (await challengeOf(user)).challenge, code: codeOf(secret) });
    expect([replay.status, replay.body.message]).toEqual([401, expect.stringContaining('used before')]);
    plane.clock.advance(30_000);
    const [one, other] = [await challengeOf(user), await challengeOf(user)];
    const code = codeOf(secret);
    const replies = await Promise.all([one, other].map(({ challenge }) => second({ challenge, code })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test('of another user is not accepted', async () => {
    const mine = await makeUserWithApp();
    const { secret } = await makeUserWithApp();
    const { challenge } = await challengeOf(mine.user);
    expect((await second({ challenge, code: codeOf(secret) })).status).toBe(401);
  });

  test('takes effect only with a right code', async () => {
    const user = await makeUser();
    const session = sessionOf(await login(user));
    const begun = await plane.call('POST', '/api/auth/factors/challenges', {
      body: { kind: 'totp' },
      headers: session,
    });
    const { challenge, secret } = begun.body.data;
    const add = (code: string) =>
      plane.call('POST', '/api/auth/factors', { body: { challenge, name: 'phone', code }, headers: session });
    const refused = await add(wrongCode(secret));
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('the code is wrong')]);
    expect((await factorsOf(session)).factors).toEqual([]);
    expect((await login(user)).body.data.session_key).toBeTypeOf('string');
    for (let attempt = 1; attempt < 5; attempt += 1) await add(wrongCode(secret));
    expect((await add(codeOf(secret))).body.errors).toEqual({ challenge: [expect.stringContaining('begin again')] });
  });
});

describe('a challenge', () => {
  test('opens one session, also for two requests at once', async () => {
    const { user, recovery_codes } = await makeUserWithApp();
    const { challenge } = await challengeOf(user);
    const attempts = recovery_codes.slice(0, 2).map((recovery_code: string) => second({ challenge, recovery_code }));
    const replies = await Promise.all(attempts);
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
    const late = await second({ challenge, recovery_code: recovery_codes[2] });
    expect([late.status, late.body.message]).toEqual([401, expect.stringContaining('has expired')]);
  });

  test('expires after 5 minutes', async () => {
    const { user, secret } = await makeUserWithApp();
    const { challenge } = await challengeOf(user);
    plane.clock.advance(5 * minute);
    expect((await second({ challenge, code: codeOf(secret) })).status).toBe(401);
  });

  test('is void after 5 wrong codes, which the audit has without the codes', async () => {
    const { user, secret } = await makeUserWithApp();
    const { challenge } = await challengeOf(user);
    const wrong = wrongCode(secret);
    for (let attempt = 0; attempt < 5; attempt += 1)
      expect((await second({ challenge, code: wrong })).status).toBe(401);
    const late = await second({ challenge, code: codeOf(secret) });
    expect([late.status, late.body.message]).toEqual([401, expect.stringContaining('failed too often')]);
    const entries = await auditOf(['login.refused'], 5);
    expect(entries).toHaveLength(5);
    expect(entries[0]).toMatchObject({
      actor: { kind: 'nobody' },
      target: { kind: 'user', id: user.id, name: user.email },
      address: '203.0.113.7',
      details: { second_factor: 'totp' },
    });
    expect(JSON.stringify(entries)).not.toContain(wrong);
  });

  test('is void after a new password, and no use for a removed user', async () => {
    const { user, session, secret } = await makeUserWithApp();
    const { challenge } = await challengeOf(user);
    const body = { current_password: password, new_password: 'another long password', session_cookie: '/' };
    expect((await plane.call('PUT', '/api/auth/password', { body, headers: session })).status).toBe(200);
    expect((await second({ challenge, code: codeOf(secret) })).status).toBe(401);
    const { challenge: later } = await challengeOf({ ...user, password: body.new_password });
    expect((await plane.call('DELETE', `/api/users/${user.id}`, { token: ownerToken })).status).toBe(200);
    expect((await second({ challenge: later, code: codeOf(secret) })).status).toBe(401);
  });

  test('must come from a page of this origin, with one kind of factor', async () => {
    const { user, secret } = await makeUserWithApp();
    const { challenge } = await challengeOf(user);
    const { 'sec-fetch-site': _, ...noPage } = page;
    for (const headers of [noPage, { ...page, 'sec-fetch-site': 'cross-site' }]) {
      expect((await second({ challenge, code: codeOf(secret) }, headers)).status).toBe(403);
    }
    expect((await second({ challenge })).body.errors).toEqual({ code: [expect.stringContaining('must be given')] });
    expect((await second({ challenge, code: '1', recovery_code: '1' })).status).toBe(422);
    expect((await second({ challenge: 'cpc_made-up', code: '123456' })).status).toBe(401);
    // A token of another kind is no challenge, and a challenge is no token.
    expect((await second({ challenge: ownerToken, code: codeOf(secret) })).status).toBe(401);
    expect((await plane.call('GET', '/api/auth/me', { token: challenge })).status).toBe(401);
    expect((await second({ challenge, code: codeOf(secret) })).status).toBe(200);
  });
});

describe('wrong codes', () => {
  test('of one user are limited over all challenges and addresses, not for recovery codes', async () => {
    const { user, secret, recovery_codes } = await makeUserWithApp();
    const from = (attempt: number) => pageAt('cp.test', 'https', `203.0.113.${attempt + 10}`);
    const guess = async (attempt: number, code: string) =>
      second({ challenge: (await challengeOf(user, from(attempt))).challenge, code }, from(attempt));
    for (let attempt = 0; attempt < 10; attempt += 1)
      expect((await guess(attempt, wrongCode(secret))).status).toBe(401);
    const refused = await guess(11, codeOf(secret));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
    expect(refused.body.message).toContain('use a passkey or a recovery code');
    const { challenge } = await challengeOf(user);
    expect((await second({ challenge, recovery_code: recovery_codes[0] })).status).toBe(200);
    plane.clock.advance(60 * minute);
    expect((await guess(12, codeOf(secret))).status).toBe(200);
    plane.clock.advance(30_000);
    expect((await guess(13, wrongCode(secret))).status).toBe(401);
    expect((await guess(14, codeOf(secret))).status).toBe(200);
  });

  test('count like wrong passwords for their address', async () => {
    const limited = await startPlane({ limits: { failedLogins: 3 } });
    const local = { 'sec-fetch-site': 'same-origin' };
    const attempt = () =>
      limited.call('POST', '/api/auth/login/second-factor', {
        body: { challenge: 'cpc_x', code: '123456', session_cookie: '/' },
        headers: local,
      });
    for (let count = 0; count < 3; count += 1) expect((await attempt()).status).toBe(401);
    expect((await attempt()).status).toBe(429);
    const body = { email: 'owner@example.net', password: 'x' };
    expect((await limited.call('POST', '/api/auth/login', { body })).status).toBe(429);
  });
});

describe('a login without a page', () => {
  test('is refused, after the right password alone, and audited', async () => {
    const { user } = await makeUserWithApp();
    const refused = await loginByApi(user);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('cpn login --token-file')]);
    expect((await auditOf(['login.refused']))[0]).toMatchObject({
      target: { id: user.id },
      details: { second_factor: 'missing' },
    });
    const wrong = await loginByApi({ ...user, password: 'not this one at all' });
    const unknown = await loginByApi({ ...user, email: 'unknown@example.net' });
    expect([wrong.status, wrong.body]).toEqual([401, unknown.body]);
    const wrongInPage = await login({ ...user, password: 'not this one at all' });
    expect([wrongInPage.status, wrongInPage.body]).toEqual([401, unknown.body]);
  });

  test('is done by a personal token', async () => {
    const { session } = await makeUserWithApp();
    const token = await plane.call('POST', '/api/auth/tokens', { body: { name: 'cli' }, headers: session });
    const { access_token } = token.body.data;
    expect((await plane.call('GET', '/api/networks', { token: access_token })).status).toBe(200);
    // It adds and removes no factor.
    for (const [method, path, body] of [
      ['GET', '/api/auth/factors', undefined],
      ['POST', '/api/auth/factors/challenges', { kind: 'totp' }],
      ['POST', '/api/auth/factors/recovery-codes', undefined],
      ['DELETE', '/api/auth/factors/1', undefined],
    ] as const) {
      expect([path, (await plane.call(method, path, { token: access_token, body })).status]).toEqual([path, 403]);
    }
  });
});

describe('a recovery code', () => {
  test('replaces a factor once, however it is typed', async () => {
    const { user, recovery_codes } = await makeUserWithApp();
    const [code] = recovery_codes;
    expect(code).toMatch(/^([A-Z2-9]{4}-){3}[A-Z2-9]{4}$/);
    const typed = ` ${code.toLowerCase().replaceAll('-', ' ')}`;
    const opened = await second({ challenge: (await challengeOf(user)).challenge, recovery_code: typed });
    expect(opened.status).toBe(200);
    expect((await auditOf(['factor.recovery_used']))[0]).toMatchObject({
      actor: { id: user.id },
      details: { left: 9 },
    });
    const { challenge, recovery_codes_left } = await challengeOf(user);
    expect(recovery_codes_left).toBe(9);
    const again = await second({ challenge, recovery_code: code });
    expect([again.status, again.body.message]).toEqual([401, expect.stringContaining('used before')]);
  });

  test('is used once by two requests at once', async () => {
    const { user, recovery_codes } = await makeUserWithApp();
    const challenges = [await challengeOf(user), await challengeOf(user)];
    const replies = await Promise.all(
      challenges.map(({ challenge }) => second({ challenge, recovery_code: recovery_codes[0] })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test('of another user is not accepted, nor one that was replaced', async () => {
    const mine = await makeUserWithApp();
    const other = await makeUserWithApp();
    const attempt = async (user: User, recovery_code: string) =>
      (await second({ challenge: (await challengeOf(user)).challenge, recovery_code })).status;
    expect(await attempt(mine.user, other.recovery_codes[0])).toBe(401);
    const replaced = await plane.call('POST', '/api/auth/factors/recovery-codes', { headers: mine.session });
    expect(replaced.status).toBe(201);
    expect(replaced.body.data.recovery_codes).toHaveLength(10);
    expect((await auditOf(['recovery_codes.create']))[0]).toMatchObject({ details: { count: 10 } });
    expect(await attempt(mine.user, mine.recovery_codes[0])).toBe(401);
    expect(await attempt(mine.user, replaced.body.data.recovery_codes[0])).toBe(200);
  });

  test('exists only next to a factor', async () => {
    const session = sessionOf(await login(await makeUser()));
    expect((await plane.call('POST', '/api/auth/factors/recovery-codes', { headers: session })).status).toBe(403);
  });
});

describe('a passkey', () => {
  const use = async (user: User, authenticator: Authenticator, at = site, headers = page) => {
    const { challenge, passkey } = await challengeOf(user, headers);
    return second({ challenge, passkey: authenticator.get(passkey, at) }, headers);
  };

  test('opens the session, and its counter moves on', async () => {
    const { user, authenticator } = await makeUserWithPasskey();
    const { passkey, kinds, passkey_hosts } = await challengeOf(user);
    expect(passkey).toMatchObject({
      rpId: 'cp.test',
      allowCredentials: [{ id: authenticator.id, type: 'public-key' }],
      userVerification: 'preferred',
    });
    expect([kinds, passkey_hosts]).toEqual([['passkey'], ['cp.test']]);
    authenticator.counter = 5;
    expect((await use(user, authenticator)).status).toBe(200);
    expect((await auditOf(['login']))[0]).toMatchObject({ details: { method: 'password+passkey' } });
    // A copy of the passkey is behind.
    authenticator.counter = 5;
    expect((await use(user, authenticator)).status).toBe(401);
    authenticator.counter = 4;
    expect((await use(user, authenticator)).status).toBe(401);
    authenticator.counter = 6;
    expect((await use(user, authenticator)).status).toBe(200);
  });

  test('of another user, or an unknown one, is not accepted', async () => {
    const mine = await makeUserWithPasskey();
    const other = await makeUserWithPasskey();
    expect((await use(mine.user, other.authenticator)).status).toBe(401);
    expect((await use(mine.user, makeAuthenticator())).status).toBe(401);
    // The signature of one passkey in the name of another.
    const { challenge, passkey } = await challengeOf(mine.user);
    const forged = {
      ...other.authenticator.get(passkey, site),
      id: mine.authenticator.id,
      rawId: mine.authenticator.id,
    };
    expect((await second({ challenge, passkey: forged })).status).toBe(401);
  });

  test('signs one challenge: no other, none of another page, and not again', async () => {
    const { user, authenticator } = await makeUserWithPasskey();
    const [one, other] = [await challengeOf(user), await challengeOf(user)];
    const signed = authenticator.get(one.passkey, site);
    expect((await second({ challenge: other.challenge, passkey: signed })).status).toBe(401);
    for (const at of [
      { origin: 'https://evil.test', rpId: 'cp.test' },
      { origin: 'http://cp.test', rpId: 'cp.test' },
      { origin: 'https://cp.test', rpId: 'evil.test' },
      { origin: 'https://cp.test:8443', rpId: 'cp.test' },
    ]) {
      expect((await use(user, authenticator, at)).status).toBe(401);
    }
    expect((await second({ challenge: one.challenge, passkey: signed })).status).toBe(200);
    expect((await second({ challenge: one.challenge, passkey: signed })).status).toBe(401);
  });

  test('works at its own name alone, and the page names it', async () => {
    const { user, authenticator } = await makeUserWithPasskey();
    const elsewhere = pageAt('other.test');
    const { challenge, passkey, passkey_hosts } = await challengeOf(user, elsewhere);
    expect([passkey, passkey_hosts]).toEqual([null, ['cp.test']]);
    const { passkey: options } = await challengeOf(user);
    const signed = authenticator.get(options, { origin: 'https://other.test', rpId: 'other.test' });
    expect((await second({ challenge, passkey: signed }, elsewhere)).status).toBe(401);
  });

  test.each([
    ['an address', '192.0.2.1', 'https', /DNS name/],
    ['an IPv6 address', '[2001:db8::1]:8443', 'https', /DNS name/],
    ['plain http', 'cp.test', 'http', /https/],
  ])('cannot be added at %s, and the page learns why', async (_, host, protocol, problem) => {
    const here = pageAt(host, protocol);
    const session = sessionOf(await login(await makeUser(), here), here);
    expect((await factorsOf(session)).passkey_problem).toMatch(problem);
    const refused = await plane.call('POST', '/api/auth/factors/challenges', {
      body: { kind: 'passkey' },
      headers: session,
    });
    expect([refused.status, refused.body.errors.kind[0]]).toEqual([422, expect.stringMatching(problem)]);
    expect((await addApp(session)).factor.kind).toBe('totp');
  });

  test('is possible on this machine over http', async () => {
    const here = pageAt('localhost:8787', 'http');
    const user = await makeUser();
    const session = sessionOf(await login(user, here), here);
    const authenticator = makeAuthenticator();
    const local = { origin: 'http://localhost:8787', rpId: 'localhost' };
    expect((await addPasskey(session, authenticator, local)).status).toBe(201);
    expect((await use(user, authenticator, local, here)).status).toBe(200);
  });

  test('is not added by a wrong page or for another challenge', async () => {
    const session = sessionOf(await login(await makeUser()));
    const refused = await addPasskey(session, makeAuthenticator(), { origin: 'https://evil.test', rpId: 'cp.test' });
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('not accepted')]);
    expect((await addPasskey(session, makeAuthenticator(), { ...site, rpId: 'evil.test' })).status).toBe(403);
    const other = { create: () => makeAuthenticator().create({ challenge: 'AAAA' }, site) } as unknown as Authenticator;
    expect((await addPasskey(session, other)).status).toBe(403);
    expect((await factorsOf(session)).factors).toEqual([]);
  });

  test('is not offered again to the authenticator that has it', async () => {
    const { session, authenticator } = await makeUserWithPasskey();
    const begun = await plane.call('POST', '/api/auth/factors/challenges', {
      body: { kind: 'passkey' },
      headers: session,
    });
    expect(begun.body.data.passkey).toMatchObject({
      rp: { id: 'cp.test' },
      excludeCredentials: [{ id: authenticator.id }],
      attestation: 'none',
    });
  });
});

describe('to add a factor', () => {
  test('needs a recent login or the password, and in a stolen session of a user with a factor neither helps', async () => {
    const user = await makeUser();
    const session = sessionOf(await login(user));
    plane.clock.advance(6 * minute);
    const begin = (fields: object = {}) =>
      plane.call('POST', '/api/auth/factors/challenges', { body: { kind: 'totp', ...fields }, headers: session });
    expect((await begin()).body.errors).toEqual({ password: [expect.stringContaining('is required')] });
    expect((await begin({ password: 'not this one at all' })).status).toBe(403);
    const { recovery_codes } = await addApp(session, { password });
    expect(recovery_codes).toHaveLength(10);
    const refused = await begin({ password });
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('log in again')]);
  });

  test('ends the other sessions with the first factor, and not those of others', async () => {
    const user = await makeUser();
    const [one, other] = [sessionOf(await login(user)), sessionOf(await login(user))];
    const api = (await loginByApi(user)).body.data.access_token;
    const { sessions_ended } = await addApp(one);
    expect(sessions_ended).toBe(2);
    expect([await isOpen(one), await isOpen(other)]).toEqual([true, false]);
    expect((await plane.call('GET', '/api/auth/me', { token: api })).status).toBe(401);
    expect((await plane.call('GET', '/api/auth/me', { token: ownerToken })).status).toBe(200);
    expect((await auditOf(['factor.add']))[0]).toMatchObject({
      target: { kind: 'second_factor', name: 'phone' },
      details: { kind: 'totp', sessions_ended: 2 },
    });
    const later = await addApp(one);
    expect([later.sessions_ended, later.recovery_codes]).toEqual([0, undefined]);
  });

  test('needs a challenge of the same session', async () => {
    const user = await makeUser();
    const [one, other] = [sessionOf(await login(user)), sessionOf(await login(user))];
    const stranger = sessionOf(await login(await makeUser()));
    const begun = await plane.call('POST', '/api/auth/factors/challenges', { body: { kind: 'totp' }, headers: one });
    const { challenge, secret } = begun.body.data;
    const add = (headers: Record<string, string>) =>
      plane.call('POST', '/api/auth/factors', { body: { challenge, name: 'phone', code: codeOf(secret) }, headers });
    expect([(await add(other)).status, (await add(stranger)).status]).toEqual([422, 422]);
    // It is no login either.
    expect((await second({ challenge, code: codeOf(secret) })).status).toBe(401);
    expect((await add(one)).status).toBe(201);
    expect((await add(one)).status).toBe(422);
  });

  test('is possible 10 times', async () => {
    const { session } = await makeUserWithApp();
    // The clock is 5 minutes on afterwards, to the second.
    for (let count = 1; count < 10; count += 1) await addApp(session);
    const refused = await plane.call('POST', '/api/auth/factors/challenges', {
      body: { kind: 'totp' },
      headers: session,
    });
    expect([refused.status, refused.body.errors]).toEqual([422, { kind: [expect.stringContaining('one too many')] }]);
  });
});

describe('with a second factor, the password proves nothing in an old session', () => {
  test.each([
    ['POST', '/api/auth/tokens', { name: 'token', password }],
    ['POST', '/api/users', { email: 'thief@example.net', password, role: 'owner', current_password: password }],
    [
      'PUT',
      '/api/auth/password',
      { current_password: password, new_password: 'the one of a thief', session_cookie: '/' },
    ],
    ['POST', '/api/auth/factors/challenges', { kind: 'totp', password }],
    ['POST', '/api/auth/factors/recovery-codes', undefined],
  ])('%s %s', async (method, path, body) => {
    const { user, session, secret } = await makeUserWithApp('owner');
    plane.clock.advance(6 * minute);
    const refused = await plane.call(method, path, { body, headers: session });
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('log in again')]);
    const { challenge } = await challengeOf(user);
    const fresh = sessionOf(await second({ challenge, code: codeOf(secret) }));
    expect((await plane.call(method, path, { body, headers: fresh })).status).toBeLessThan(300);
  });
});

describe('with a second factor, a password does not renew the login', () => {
  const isRecent = async (token: string) =>
    (await plane.call('POST', '/api/auth/factors/recovery-codes', { token })).status === 201;

  test('by the approval of a device code', async () => {
    const { session } = await makeUserWithApp();
    plane.clock.advance(3 * minute);
    const started = await plane.call('POST', '/api/auth/device-codes', { body: { device_name: 'laptop' } });
    const { data } = started.body;
    const at = `/api/auth/device-codes/${data.user_code}/approval`;
    const approval = await plane.call('POST', at, { body: { approve: true, password }, headers: session });
    expect(approval.status).toBe(200);
    const body = { device_code: data.device_code };
    const token = (await plane.call('POST', '/api/auth/device-codes/token', { body })).body.data.access_token;
    expect(await isRecent(token)).toBe(true);
    plane.clock.advance(3 * minute);
    expect(await isRecent(token)).toBe(false);
  });

  test('by its change', async () => {
    const { session } = await makeUserWithApp();
    plane.clock.advance(3 * minute);
    const body = { current_password: password, new_password: 'another long password', session_cookie: '/' };
    const renewed = sessionOf(await plane.call('PUT', '/api/auth/password', { body, headers: session }));
    plane.clock.advance(3 * minute);
    const codes = await plane.call('POST', '/api/auth/factors/recovery-codes', { headers: renewed });
    expect(codes.status).toBe(403);
  });
});

describe('a removed factor', () => {
  test('is asked for no more, and the last one takes the recovery codes along', async () => {
    const { user, session, secret, factor, recovery_codes } = await makeUserWithApp();
    const authenticator = makeAuthenticator();
    await addPasskey(session, authenticator);
    const waiting = await challengeOf(user);
    const remove = (id: number, headers = session) => plane.call('DELETE', `/api/auth/factors/${id}`, { headers });
    expect((await remove(factor.id)).status).toBe(200);
    expect((await auditOf(['factor.remove']))[0]).toMatchObject({
      target: { kind: 'second_factor', id: factor.id, name: 'phone' },
      details: { kind: 'totp', last: false },
    });
    expect((await second({ challenge: waiting.challenge, code: codeOf(secret) })).status).toBe(401);
    expect((await challengeOf(user)).kinds).toEqual(['passkey']);
    const [{ id: passkey }] = (await factorsOf(session)).factors;
    expect((await remove(passkey)).status).toBe(200);
    expect(await factorsOf(session)).toMatchObject({ factors: [], recovery_codes_left: 0 });
    expect((await second({ challenge: waiting.challenge, recovery_code: recovery_codes[0] })).status).toBe(401);
    expect((await login(user)).body.data.session_key).toBeTypeOf('string');
    expect((await loginByApi(user)).status).toBe(200);
  });

  test('needs a recent login, and is one of the caller', async () => {
    const { session, factor } = await makeUserWithApp();
    const stranger = sessionOf(await login(await makeUser()));
    const remove = (headers: Record<string, string>) =>
      plane.call('DELETE', `/api/auth/factors/${factor.id}`, { headers });
    expect((await remove(stranger)).status).toBe(404);
    plane.clock.advance(6 * minute);
    expect((await remove(session)).status).toBe(403);
    expect((await factorsOf(session)).factors).toHaveLength(1);
  });
});

describe('a user that lost its factors', () => {
  const reset = (id: number, token: string) => plane.call('DELETE', `/api/users/${id}/factors`, { token });

  test('gets rid of them by an admin, who sees who has some', async () => {
    const { user, secret } = await makeUserWithApp();
    const plain = await makeUser();
    const { challenge } = await challengeOf(user);
    const users = (await plane.call('GET', '/api/users?limit=200', { token: ownerToken })).body.data;
    const has = (id: number) => users.find((each: { id: number }) => each.id === id).has_second_factor;
    expect([has(user.id), has(plain.id)]).toEqual([true, false]);
    const admin = await plane.signIn('admin');
    const done = await reset(user.id, admin);
    expect([done.status, done.body.data]).toEqual([200, { factors_removed: 1 }]);
    expect((await auditOf(['factor.remove']))[0]).toMatchObject({
      target: { kind: 'user', id: user.id, name: user.email },
      details: { factors_removed: 1 },
    });
    expect((await second({ challenge, code: codeOf(secret) })).status).toBe(401);
    expect((await loginByApi(user)).status).toBe(200);
    expect((await reset(user.id, admin)).body.data).toEqual({ factors_removed: 0 });
  });

  test('is not helped by a member, an admin for an owner, a token, an old session or another organization', async () => {
    const { user } = await makeUserWithApp('owner');
    const admin = await plane.signIn('admin');
    expect((await reset(user.id, await plane.signIn('member'))).status).toBe(403);
    const refused = await reset(user.id, admin);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('only an owner')]);
    const foreigner = await plane.signIn('owner', await plane.addOrganization(`other ${made}`));
    expect((await reset(user.id, foreigner)).status).toBe(404);
    const owner = await plane.signIn('owner');
    const token = await plane.call('POST', '/api/auth/tokens', { token: owner, body: { name: 'ci' } });
    expect((await reset(user.id, token.body.data.access_token)).status).toBe(403);
    plane.clock.advance(6 * minute);
    expect((await reset(user.id, owner)).status).toBe(403);
    expect((await loginByApi(user)).status).toBe(403);
    expect((await reset(user.id, await plane.signIn('owner'))).status).toBe(200);
  });

  test('does not do so itself: a session may be stolen', async () => {
    const { user, session } = await makeUserWithApp('owner');
    const refused = await plane.call('DELETE', `/api/users/${user.id}/factors`, { headers: session });
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('Account page')]);
  });
});

test('the database has hashes of recovery codes and challenges, and the log has no secret', async () => {
  const { user, secret, recovery_codes } = await makeUserWithApp();
  const { challenge } = await challengeOf(user);
  const code = codeOf(secret);
  await second({ challenge: (await challengeOf(user)).challenge, code });
  const rows = await withDatabase(plane.dataDir, async (db) => [
    ...(await db.selectFrom('recovery_codes').selectAll().where('user_id', '=', user.id).execute()),
    ...(await db.selectFrom('factor_challenges').selectAll().where('user_id', '=', user.id).execute()),
  ]);
  const stored = JSON.stringify(rows);
  for (const plain of [...recovery_codes, challenge]) expect(stored).not.toContain(plain);
  for (const plain of [...recovery_codes, challenge, secret, code]) expect(plane.log()).not.toContain(plain);
});

test('logins from another network void no challenge, also at the bound of a user', async () => {
  const { user, secret } = await makeUserWithApp();
  const { challenge } = await challengeOf(user);
  for (let count = 0; count < 105; count += 1)
    await challengeOf(user, pageAt('cp.test', 'https', `198.51.${count % 7}.${count}`));
  const rows = await withDatabase(plane.dataDir, (db) =>
    db.selectFrom('factor_challenges').select('id').where('user_id', '=', user.id).execute(),
  );
  expect(rows).toHaveLength(100);
  expect((await second({ challenge, code: codeOf(secret) })).status).toBe(200);
});

test('a login that gave no second factor is in the audit, once, and a login that did is not', async () => {
  const { user, secret } = await makeUserWithApp();
  const refused = async () =>
    (await auditOf(['login.refused'], 50)).filter(({ target }: { target: { id: number } }) => target.id === user.id);
  const thief = await challengeOf(user, pageAt('cp.test', 'https', '198.51.100.9'));
  expect(await refused()).toEqual([]);
  plane.clock.advance(6 * minute);
  for (let count = 0; count < 2; count += 1) {
    plane.clock.advance(minute);
    expect((await second({ challenge: (await challengeOf(user)).challenge, code: codeOf(secret) })).status).toBe(200);
    expect(await refused()).toMatchObject([
      { address: '198.51.100.9', details: { second_factor: 'missing', until: thief.expires_at } },
    ]);
  }
});

test('a user has 20 challenges of one address at most, of which the newest are valid', async () => {
  const { user, secret } = await makeUserWithApp();
  const first = await challengeOf(user);
  for (let count = 0; count < 20; count += 1) await challengeOf(user);
  expect((await second({ challenge: first.challenge, code: codeOf(secret) })).status).toBe(401);
  const { challenge } = await challengeOf(user);
  const rows = await withDatabase(plane.dataDir, (db) =>
    db.selectFrom('factor_challenges').select('id').where('user_id', '=', user.id).execute(),
  );
  expect(rows).toHaveLength(20);
  expect((await second({ challenge, code: codeOf(secret) })).status).toBe(200);
});

test('a version without second factors does not start while a user has one', async () => {
  const own = await startPlane();
  const call = (method: string, path: string, body?: object) => own.call(method, path, { token: session, body });
  const session = await own.signIn('owner');
  const add = async () => {
    const { challenge, secret } = (await call('POST', '/api/auth/factors/challenges', { kind: 'totp' })).body.data;
    const code = new TOTP({ secret: Key.fromBase32(secret) }).generate({ timestamp: own.clock.now().getTime() });
    const added = await call('POST', '/api/auth/factors', { challenge, name: 'phone', code });
    return added.body.data.factor.id;
  };
  const earlier = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < '0035'));
  const start = () => withDatabase(own.dataDir, (db) => migrate(db, earlier, neededMigration));
  await start();
  const id = await add();
  await expect(start()).rejects.toThrow(new NewerDatabase('0035-second-factors'));
  await call('DELETE', `/api/auth/factors/${id}`);
  await start();
  await add();
  const { id: user } = (await call('GET', '/api/auth/me')).body.data;
  await expect(start()).rejects.toThrow(NewerDatabase);
  await own.call('DELETE', `/api/users/${user}`, { token: await own.signIn('owner') });
  await start();
});
