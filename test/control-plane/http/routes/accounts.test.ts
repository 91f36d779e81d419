import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../../../../src/contract/auth.ts';
import { parsePrefix } from '../../../../src/core/net/cidr.ts';
import { closePlane, hour, openPlane, owner, type Plane, type Reply, startPlane, withDatabase } from '../../harness.ts';

let plane: Plane;
let token: string;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const first = 'the first long password';
const second = 'the second long password';
let made = 0;

/** A user with the first password, and its sessions. */
async function makeUser(role: Role, sessions = 1) {
  const email = `person-${++made}@example.net`;
  const body = { email, password: first, role };
  // Some tests advance the clock.
  token = await plane.signIn('owner');
  const { id } = (await plane.call('POST', '/api/users', { token, body })).body.data as { id: number };
  const tokens: string[] = [];
  for (let count = 0; count < sessions; count += 1) tokens.push((await login(email, first)).body.data.access_token);
  return { id, email, tokens, session: tokens[0] ?? '' };
}

const login = (email: string, password: string, device_name = 'laptop') =>
  plane.call('POST', '/api/auth/login', { body: { email, password, device_name } });
const passwd = (as: string, current_password: string, new_password = second) =>
  plane.call('PUT', '/api/auth/password', { token: as, body: { current_password, new_password } });
const listSessions = (as: string) => plane.call('GET', '/api/auth/sessions', { token: as });
const endSession = (as: string, id: number) => plane.call('DELETE', `/api/auth/sessions/${id}`, { token: as });
const setRole = (as: string, id: number, role?: string) =>
  plane.call('PATCH', `/api/users/${id}`, { token: as, body: { role } });
const status = async (as: string) => (await plane.call('GET', '/api/auth/me', { token: as })).status;
const newest = async () => (await plane.call('GET', '/api/audit?limit=1', { token })).body.data[0];

describe('the own password', () => {
  test('is changed with the current one; all sessions end, the personal tokens are revoked, and a fresh session takes over', async () => {
    const { id, email, tokens } = await makeUser('viewer', 3);
    const [own = '', ...others] = tokens;
    const body = { name: 'ci' };
    const made = (await plane.call('POST', '/api/auth/tokens', { token: own, body })).body.data;
    const { access_token: personal, ...listed } = made;
    const { data } = (await passwd(own, first)).body;
    const expires_at = new Date(plane.clock.now().getTime() + 7 * 24 * hour).toISOString();
    expect(data).toMatchObject({ sessions_ended: 2, tokens_revoked: [listed], expires_at });
    const [fresh] = (await listSessions(data.access_token)).body.data;
    expect(fresh).toMatchObject({ device_name: 'laptop', is_current: true });
    expect(await newest()).toMatchObject({
      actor: { kind: 'user', id, name: email },
      action: 'password.change',
      target: { kind: 'user', id, name: email },
      details: { sessions_ended: 2, tokens_revoked: [{ id: made.id, name: 'ci' }] },
    });
    expect(await Promise.all([own, personal, ...others, data.access_token].map(status))).toEqual([
      401, 401, 401, 401, 200,
    ]);
    expect([(await login(email, first)).status, (await login(email, second)).status]).toEqual([401, 200]);
    expect(plane.log()).not.toMatch(/long password/);
  });

  test('leaves a stolen copy of the session that changes it nothing, for a page as well', async () => {
    const { email } = await makeUser('viewer');
    const headers = { origin: plane.url };
    const body = { email, password: first, session_cookie: '/' };
    const entered = await plane.call('POST', '/api/auth/login', { body, headers });
    const cookieOf = (reply: Reply) => reply.headers.get('set-cookie')?.split(';')[0] ?? '';
    const session = (reply: Reply) => ({
      ...headers,
      cookie: cookieOf(reply),
      'session-key': reply.body.data.session_key as string,
    });
    const change = { current_password: first, new_password: second, session_cookie: '/' };
    const changed = await plane.call('PUT', '/api/auth/password', { body: change, headers: session(entered) });
    expect(changed.body.data).not.toHaveProperty('access_token');
    const me = async (of: object) => (await plane.call('GET', '/api/auth/me', { headers: { ...of } })).status;
    expect([await me(session(entered)), await me(session(changed))]).toEqual([401, 200]);
    const halves = { ...session(changed), cookie: cookieOf(entered) };
    expect(await me(halves)).toBe(401);

    // A page of the version before names no path, and logs in again.
    const older = { current_password: second, new_password: first };
    const left = await plane.call('PUT', '/api/auth/password', { body: older, headers: session(changed) });
    expect([left.status, left.headers.get('set-cookie')]).toEqual([200, null]);
    for (const name of ['access_token', 'session_key']) expect(left.body.data).not.toHaveProperty(name);
    expect(await me(session(changed))).toBe(401);
  });

  test('keeps personal tokens valid on request', async () => {
    const { session } = await makeUser('viewer');
    const made = await plane.call('POST', '/api/auth/tokens', { token: session, body: { name: 'ci' } });
    const body = { current_password: first, new_password: second, keep_tokens: true };
    const changed = await plane.call('PUT', '/api/auth/password', { token: session, body });
    expect(changed.body.data).toMatchObject({ sessions_ended: 0, tokens_revoked: [] });
    expect(await status(made.body.data.access_token)).toBe(200);
  });

  test('leaves no token that a session which it ends makes at the same time', async () => {
    for (let round = 0; round < 4; round += 1) {
      const { tokens } = await makeUser('viewer', 2);
      const [own = '', stolen = ''] = tokens;
      const making = Array.from({ length: 6 }, () =>
        plane.call('POST', '/api/auth/tokens', { token: stolen, body: { name: 'late' } }),
      );
      expect((await passwd(own, first)).status).toBe(200);
      const replies = await Promise.all(making);
      expect(replies.map(({ status: each }) => each).filter((each) => each !== 201 && each !== 401)).toEqual([]);
      const made = replies.flatMap(({ body }) => body.data?.access_token ?? []);
      expect((await Promise.all(made.map(status))).filter((each) => each !== 401)).toEqual([]);
    }
  });

  test('stays with a wrong current one, which is a 403 and in the audit', async () => {
    const { email, tokens, session } = await makeUser('viewer', 2);
    const refused = await passwd(session, 'wrong');
    expect([refused.status, refused.body]).toEqual([
      403,
      { message: 'the current password is wrong; give the one that you log in with' },
    ]);
    expect(await newest()).toMatchObject({ action: 'password.refused', target: { kind: 'user', name: email } });
    expect(await Promise.all(tokens.map(status))).toEqual([200, 200]);
    expect((await login(email, first)).status).toBe(200);
  });

  test('is long enough, and every field that is not in order is named', async () => {
    const { session } = await makeUser('viewer');
    const { status, body } = await passwd(session, '', 'short');
    expect([status, body.errors]).toEqual([
      422,
      { current_password: ['must not be empty'], new_password: ['must be at least 12 characters'] },
    ]);
  });

  test('cannot be guessed faster than by logging in', async () => {
    const strict = await startPlane({ limits: { failedLogins: 2 } });
    const body = { ...owner, device_name: 'x' };
    const session = (await strict.call('POST', '/api/auth/login', { body })).body.data.access_token;
    const guess = { current_password: 'wrong', new_password: second };
    const statuses = [];
    for (let times = 0; times < 3; times += 1) {
      statuses.push((await strict.call('PUT', '/api/auth/password', { token: session, body: guess })).status);
    }
    statuses.push((await strict.call('POST', '/api/auth/login', { body })).status);
    // A thief of a session keeps no user from logging in, nor from a new password in another session.
    expect(statuses).toEqual([403, 403, 429, 200]);
  });

  test('leaves no session that the one before it opens at the same time', async () => {
    const slow = await startPlane({ passwordCost: { N: 2 ** 12, r: 8, p: 1 }, proxies: [parsePrefix('127.0.0.1/32')] });
    const from = (address: number) => ({ 'x-forwarded-for': `203.0.${address}.1` });
    const enter = (address: number) => slow.call('POST', '/api/auth/login', { body: owner, headers: from(address) });
    const session = (await enter(0)).body.data.access_token;
    const change = slow.call('PUT', '/api/auth/password', {
      token: session,
      body: { current_password: owner.password, new_password: second },
      headers: from(0),
    });
    const logins = await Promise.all(Array.from({ length: 8 }, (_, index) => enter(1 + index)));
    expect((await change).status).toBe(200);
    const opened = logins.flatMap(({ body }) => body.data?.access_token ?? []);
    const left = await Promise.all(opened.map((each) => slow.call('GET', '/api/auth/me', { token: each })));
    expect(left.filter(({ status }) => status === 200)).toEqual([]);
  });
});

describe('what outlives a credential', () => {
  const keysOf = (network: number) => `/api/networks/${network}/enrollment-keys`;

  test('is no user and no higher role by a personal token, whatever password comes with it', async () => {
    const { id, session } = await makeUser('owner');
    const other = await makeUser('member');
    const body = { name: 'leaked' };
    const leaked = (await plane.call('POST', '/api/auth/tokens', { token: session, body })).body.data.access_token;
    for (const role of ['owner', 'viewer']) {
      const fields = { email: 'ghost@example.net', password: first, role, current_password: first };
      const refused = await plane.call('POST', '/api/users', { token: leaked, body: fields });
      expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('personal token')]);
    }
    const raise = await plane.call('PATCH', `/api/users/${other.id}`, {
      token: leaked,
      body: { role: 'owner', current_password: first },
    });
    expect([raise.status, raise.body.message]).toEqual([403, expect.stringContaining('personal token')]);
    // What takes rights away is not held up.
    expect((await setRole(leaked, other.id, 'viewer')).status).toBe(200);
    expect((await setRole(session, other.id, 'admin')).status).toBe(200);
    expect((await plane.call('DELETE', `/api/users/${other.id}`, { token: leaked })).status).toBe(200);
    expect((await setRole(token, id, 'viewer')).status).toBe(200);
  });

  test('is no user and no higher role by a session whose login is more than 5 minutes ago, without the password', async () => {
    const { email, session } = await makeUser('owner');
    const other = await makeUser('viewer');
    const create = (current_password?: string) =>
      plane.call('POST', '/api/users', {
        token: session,
        body: { email: `late-${++made}@example.net`, password: first, role: 'viewer', current_password },
      });
    const raise = (role: string, current_password?: string) =>
      plane.call('PATCH', `/api/users/${other.id}`, { token: session, body: { role, current_password } });
    plane.clock.advance(5 * 60_000);
    expect([(await create()).status, (await raise('member')).status]).toEqual([201, 200]);
    plane.clock.advance(1);
    const required = { current_password: [expect.stringMatching(/^is required, because .* more than 5 minutes ago$/)] };
    for (const refused of [await create(), await raise('admin')])
      expect([refused.status, refused.body.errors]).toEqual([422, required]);
    expect((await raise('viewer')).status).toBe(200);
    for (const wrong of [await create(second), await raise('admin', second)])
      expect([wrong.status, wrong.body.message]).toEqual([
        403,
        'the current password is wrong; give the one that you log in with',
      ]);
    expect(await newest()).toMatchObject({ action: 'password.refused', target: { name: email } });
    expect([(await create(first)).status, (await raise('owner', first)).status]).toEqual([201, 200]);
    expect(plane.log()).not.toMatch(/long password/);
  });

  test('passwords cannot be guessed with a session faster than by logging in', async () => {
    const strict = await startPlane({ limits: { failedLogins: 2 } });
    const session = (await strict.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
    const body = { email: 'a@example.net', password: first, role: 'viewer', current_password: 'wrong' };
    const statuses = [];
    for (let times = 0; times < 2; times += 1)
      statuses.push((await strict.call('POST', '/api/users', { token: session, body })).status);
    const raise = { role: 'owner', current_password: 'wrong' };
    statuses.push((await strict.call('PATCH', '/api/users/1', { token: session, body: raise })).status);
    expect(statuses).toEqual([403, 403, 429]);
  });

  test('is listed after a new password: users that it made or raised, and keys that hosts can use', async () => {
    const { session } = await makeUser('owner');
    const raised = await makeUser('viewer');
    await makeUser('viewer');
    const body = { email: `accomplice-${++made}@example.net`, password: first, role: 'admin' };
    const created = (await plane.call('POST', '/api/users', { token: session, body })).body.data;
    expect((await setRole(session, raised.id, 'owner')).status).toBe(200);
    const fields = { name: 'made', private_cidr: '10.4.0.0/24' };
    const network = (await plane.call('POST', '/api/networks', { token: session, body: fields })).body.data.id;
    const keys = ['rack', 'revoked', 'expired'].map((name) => ({ name, expires_in_hours: name === 'expired' ? 1 : 2 }));
    const ids: number[] = [];
    for (const key of keys)
      ids.push((await plane.call('POST', keysOf(network), { token: session, body: key })).body.data.id);
    await plane.call('DELETE', `${keysOf(network)}/${ids[1]}`, { token: session });
    await plane.call('POST', keysOf(network), { token, body: { name: 'of another' } });
    plane.clock.advance(hour);
    const { data } = (await passwd(session, first)).body;
    expect(data.users_made.map(({ id, role }: { id: number; role: string }) => [id, role])).toEqual([
      [created.id, 'admin'],
      [raised.id, 'owner'],
    ]);
    const key = { id: ids[0], name: 'rack', max_uses: 1, uses: 0, expires_at: expect.any(String) };
    expect(data.keys_made).toEqual([{ ...key, network: { id: network, name: 'made' } }]);
  });
});

describe('sessions', () => {
  test('are listed without their tokens, and ended one by one', async () => {
    const { session } = await makeUser('member');
    const { email } = (await plane.call('GET', '/api/auth/me', { token: session })).body.data;
    const phone = (await login(email, first, 'phone')).body.data.access_token;
    const { body } = await listSessions(session);
    const created_at = plane.clock.now().toISOString();
    const expires_at = new Date(plane.clock.now().getTime() + 7 * 24 * hour).toISOString();
    const entry = { id: expect.any(Number), created_at, expires_at, last_used_at: created_at, address: '127.0.0.1' };
    expect(body.data).toEqual([
      { ...entry, device_name: 'laptop', is_current: true },
      { ...entry, device_name: 'phone', is_current: false },
    ]);
    const { id } = body.data[1];
    expect(await endSession(session, id)).toMatchObject({ status: 200, body: { data: null } });
    expect(await newest()).toMatchObject({ action: 'session.revoke', target: { kind: 'session', id, name: 'phone' } });
    expect([await status(session), await status(phone), (await endSession(session, id)).status]).toEqual([
      200, 401, 404,
    ]);
    plane.clock.advance(1);
    expect((await listSessions(session)).body.data).toHaveLength(1);
  });

  test('of another are not there, not even for an owner', async () => {
    const { session } = await makeUser('member');
    const [{ id }] = (await listSessions(session)).body.data;
    expect((await endSession(token, id)).status).toBe(404);
    expect((await listSessions(token)).body.data).toHaveLength(1);
    expect(await status(session)).toBe(200);
  });

  describe('of another user', () => {
    const of = (id: number, session?: number) =>
      `/api/users/${id}/sessions${session === undefined ? '' : `/${session}`}`;
    const list = async (as: string, id: number) => (await plane.call('GET', of(id), { token: as })).body.data;
    const end = (as: string, id: number, session?: number) => plane.call('DELETE', of(id, session), { token: as });

    test('are listed for an admin without their tokens, ended one by one, and all at once', async () => {
      const { session: admin, id: adminId, email: adminEmail } = await makeUser('admin');
      const { id, email, tokens } = await makeUser('member', 3);
      const personal = await plane.call('POST', '/api/auth/tokens', { token: tokens[0], body: { name: 'ci' } });
      const sessions = await list(admin, id);
      expect(sessions).toEqual(
        (await listSessions(tokens[1] ?? '')).body.data.map((each: object) => ({ ...each, is_current: false })),
      );
      const one = sessions[1].id;
      expect(await end(admin, id, one)).toMatchObject({ status: 200, body: { data: null } });
      expect(await newest()).toMatchObject({
        actor: { kind: 'user', id: adminId, name: adminEmail },
        action: 'session.revoke',
        target: { kind: 'session', id: one, name: 'laptop' },
        details: { user: { id, name: email } },
      });
      expect(await Promise.all(tokens.map(status))).toEqual([200, 401, 200]);
      expect((await end(admin, id, one)).status).toBe(404);
      expect((await end(admin, id)).body.data).toEqual({ sessions_ended: 2 });
      const revocation = { action: 'session.revoke', target: { kind: 'user', id, name: email } };
      const { id: entry, ...newestOne } = await newest();
      expect(newestOne).toMatchObject({ ...revocation, details: { sessions_ended: 2 } });
      expect(await Promise.all([...tokens, personal.body.data.access_token].map(status))).toEqual([401, 401, 401, 200]);
      // Without a session there is nothing to end, nor to record.
      expect((await end(admin, id)).body.data).toEqual({ sessions_ended: 0 });
      expect((await newest()).id).toBe(entry);
      expect(await list(admin, id)).toEqual([]);
    });

    test('are not an admin’s to end where the user is an owner, and are found under their own user alone', async () => {
      const { session: admin } = await makeUser('admin');
      const boss = await makeUser('owner');
      const member = await makeUser('member');
      const [{ id: session }] = await list(admin, boss.id);
      for (const which of [undefined, session]) {
        const refused = await end(admin, boss.id, which);
        expect([refused.status, refused.body.message]).toEqual([
          403,
          'only an owner may end the sessions of an owner; ask an owner',
        ]);
      }
      expect((await end(admin, member.id, session)).status).toBe(404);
      expect(await status(boss.session)).toBe(200);
      expect((await end(token, boss.id, session)).status).toBe(200);
      expect(await status(boss.session)).toBe(401);
      expect((await end(admin, 999_999)).status).toBe(404);
    });

    test('are one’s own too, and the one of the call goes with all', async () => {
      const { id, session } = await makeUser('admin');
      expect(await list(session, id)).toMatchObject([{ is_current: true }]);
      expect((await end(session, id)).body.data).toEqual({ sessions_ended: 1 });
      expect(await status(session)).toBe(401);
    });

    test('end long polls: the reply after the wait is a 401', async () => {
      const { id, session } = await makeUser('viewer');
      const body = { name: 'held', private_cidr: '10.5.0.0/24' };
      const network = (await plane.call('POST', '/api/networks', { token, body })).body.data.id;
      const path = `/api/networks/${network}`;
      const etag = (await plane.call('GET', path, { token: session })).headers.get('etag') ?? '';
      const headers = { prefer: 'wait=30', 'if-none-match': etag };
      const held = plane.call('GET', path, { token: session, headers });
      await new Promise((resolve) => setTimeout(resolve, 200));
      await end(token, id);
      await plane.call('PATCH', path, { token, body: { description: 'for others' } });
      expect((await held).status).toBe(401);
    });
  });

  test('none of them is the current one for a personal token, whatever its number', async () => {
    const { session } = await makeUser('member');
    const [{ id }] = (await listSessions(session)).body.data;
    const made = await plane.call('POST', '/api/auth/tokens', { token: session, body: { name: 'ci' } });
    const { access_token: personal, id: number } = made.body.data;
    await withDatabase(plane.dataDir, (db) =>
      db.updateTable('personal_tokens').set({ id }).where('id', '=', number).execute(),
    );
    expect((await listSessions(personal)).body.data).toMatchObject([{ id, is_current: false }]);
    expect((await listSessions(session)).body.data).toMatchObject([{ id, is_current: true }]);
  });

  test('have names of any length, of which the beginning is kept', async () => {
    const { email } = await makeUser('member');
    const name = `\u{1f4bb}\0${'x'.repeat(40_000)}`;
    const session = (await login(email, first, name)).body.data.access_token;
    const kept = `\u{1f4bb}\u{fffd}${'x'.repeat(253)}`;
    const { device_name } = (await listSessions(session)).body.data.at(-1);
    expect([...device_name].length).toBe(255);
    expect(device_name).toBe(kept);
    expect((await newest()).target.name).toBe(kept);
  });
});

describe('the role of a user', () => {
  test('is changed by an owner, and holds at once', async () => {
    const { id, email, session } = await makeUser('viewer');
    const make = () =>
      plane.call('POST', '/api/networks', { token: session, body: { name: 'n', private_cidr: '10.3.0.0/24' } });
    expect((await make()).status).toBe(403);
    const changed = await setRole(token, id, 'member');
    expect([changed.status, changed.body.data]).toEqual([
      200,
      { id, email, role: 'member', created_at: expect.any(String), networks: null },
    ]);
    expect(await newest()).toMatchObject({
      action: 'user.update',
      target: { kind: 'user', id, name: email },
      details: { role: 'member', role_before: 'viewer' },
    });
    expect((await make()).status).toBe(201);
    const before = (await newest()).id;
    expect((await setRole(token, id, 'member')).status).toBe(200);
    expect((await setRole(token, id)).status).toBe(200);
    expect((await newest()).id).toBe(before);
  });

  test('is not for an admin to change, not even their own', async () => {
    const admin = await makeUser('admin');
    const other = await makeUser('member');
    for (const [id, role] of [
      [admin.id, 'owner'],
      [other.id, 'viewer'],
    ] as const) {
      expect((await setRole(admin.session, id, role)).status).toBe(403);
    }
    const refused = await setRole(token, other.id, 'king');
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['role']]);
  });

  test('leaves an owner: the last one stays, also of several who demote each other at once', async () => {
    const organization = await plane.addOrganization('contested');
    const owners = await Promise.all(Array.from({ length: 4 }, () => plane.signIn('owner', organization)));
    const ids = await Promise.all(
      owners.map(async (each) => (await plane.call('GET', '/api/auth/me', { token: each })).body.data.id as number),
    );
    await Promise.all(owners.flatMap((each) => ids.map((id) => setRole(each, id, 'viewer'))));
    const left = await withDatabase(plane.dataDir, (db) =>
      db
        .selectFrom('users')
        .select(['id', 'email'])
        .where('organization_id', '=', organization)
        .where('role', '=', 'owner')
        .execute(),
    );
    expect(left).toHaveLength(1);
    const last = owners[ids.indexOf(left[0]?.id ?? 0)] ?? '';
    const refused = await setRole(last, left[0]?.id ?? 0, 'admin');
    expect([refused.status, refused.body.message]).toEqual([
      403,
      `${left[0]?.email} is the last owner; make another user an owner first`,
    ]);
  });
});
