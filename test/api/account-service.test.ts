import { describe, expect, test } from 'vitest';
import type { AdminService } from '../../src/api/admin-service.ts';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, InvalidValue, Refused, WrongUsage } from '../../src/core/errors/index.ts';
import { owner, startPlane } from '../control-plane/harness.ts';
import { failureOf, without } from './samples.ts';
import { json, type Reply, serve } from './server.ts';

const created_at = '2026-03-01T12:00:00.000Z';
const password = new Secret('password-canary');

/** What a service that answers so is asked for, and what comes of it. */
async function ask<T>(reply: Reply, question: (service: AdminService) => Promise<T>) {
  const { address, asked } = await serve(reply);
  const [outcome] = await Promise.allSettled([question(connectAdminService(address, new Secret('token-sample')))]);
  const failure = outcome.status === 'rejected' ? (outcome.reason as Error) : null;
  const value = outcome.status === 'fulfilled' ? outcome.value : null;
  return { value, failure, asked, request: asked[0] };
}

describe('users', () => {
  const user = { id: 3, email: 'a@example.net', role: 'admin', created_at };
  const wanted = { email: 'a@example.net', password, role: 'admin' } as const;

  test('are listed, with or without the envelope', async () => {
    for (const body of [{ data: [user], meta: {} }, [{ ...user, more: 1 }]]) {
      const { value, request } = await ask(json(200, body), (it) => it.listUsers());
      expect(value).toEqual([user]);
      expect(request).toMatchObject({ method: 'GET', path: '/api/users' });
    }
  });

  test('are made, and removed', async () => {
    const made = await ask(json(201, { data: user }), (it) => it.createUser(wanted));
    expect(made.value).toEqual(user);
    expect(made.request).toMatchObject({ method: 'POST', path: '/api/users' });
    expect(JSON.parse(made.request?.body ?? '')).toEqual({ ...wanted, password: 'password-canary' });
    const own = new Secret('own-canary');
    const proven = await ask(json(201, { data: user }), (it) => it.createUser({ ...wanted, current_password: own }));
    expect(JSON.parse(proven.request?.body ?? '')).toMatchObject({ current_password: 'own-canary' });
    const raised = await ask(json(200, { data: user }), (it) =>
      it.updateUser(3, { role: 'owner', current_password: own }),
    );
    expect(JSON.parse(raised.request?.body ?? '')).toEqual({ role: 'owner', current_password: 'own-canary' });
    const removed = await ask(json(200, {}), (it) => it.deleteUser(3));
    expect([removed.failure, removed.value, removed.request]).toMatchObject([
      null,
      { keys_revoked: null },
      { method: 'DELETE', path: '/api/users/3' },
    ]);
    const key = { id: 7, name: 'rack', network: { id: 1, name: 'office' } };
    const reply = json(200, { data: { keys_revoked: [{ ...key, uses: 0 }] } });
    const kept = await ask(reply, (it) => it.deleteUser(3, { keep_keys: true }));
    expect([kept.value, kept.request?.path]).toEqual([{ keys_revoked: [key] }, '/api/users/3?keep_keys=true']);
  });

  test.each([
    ['email', { email: 'unknown' }, 'is not in the form of an email address'],
    ['password', { password: new Secret('canary') }, 'must be at least 12 characters'],
    ['password', { password: new Secret('canary'.repeat(200)) }, 'must be at most 1024 bytes'],
    ['role', { role: 'king' as 'owner' }, 'must be owner or admin or member or viewer'],
  ])('are not made with a bad %s', async (field, changes, rule) => {
    const { failure, asked } = await ask(json(201, {}), (it) => it.createUser({ ...wanted, ...changes }));
    expect(failure).toBeInstanceOf(InvalidValue);
    expect(failure).toMatchObject({ field, rule });
    expect(failure?.message).not.toContain('canary');
    expect(asked).toHaveLength(0);
  });

  test('a refusal that repeats the password does not show it', async () => {
    const reply = json(422, { message: 'password-canary is too plain', errors: { password: ['password-canary'] } });
    const { failure } = await ask(reply, (it) => it.createUser(wanted));
    expect(failure).toBeInstanceOf(Refused);
    expect(failure?.message).not.toContain('password-canary');
  });

  test('change roles', async () => {
    const { value, request } = await ask(json(200, { data: user }), (it) => it.updateUser(3, { role: 'admin' }));
    expect(value).toEqual(user);
    expect(request).toMatchObject({ method: 'PATCH', path: '/api/users/3', body: '{"role":"admin"}' });
  });

  test('change their password, which is seen nowhere', async () => {
    const both = { current_password: new Secret('current-canary'), new_password: new Secret('new-password-canary') };
    const { failure, request } = await ask(json(200, { data: null }), (it) => it.changePassword(both));
    expect(failure).toBeNull();
    expect(request).toMatchObject({ method: 'PUT', path: '/api/auth/password' });
    expect(JSON.parse(request?.body ?? '')).toEqual({
      current_password: 'current-canary',
      new_password: 'new-password-canary',
    });
    const short = await ask(json(200, {}), (it) => it.changePassword({ ...both, new_password: new Secret('canary') }));
    expect(short.failure).toMatchObject({ field: 'new_password', rule: 'must be at least 12 characters' });
    expect(short.asked).toHaveLength(0);
    const refused = await ask(json(403, { message: 'current-canary is not new-password-canary' }), (it) =>
      it.changePassword(both),
    );
    for (const { message = '' } of [short.failure, refused.failure].flatMap((each) => each ?? [])) {
      expect(message).not.toContain('canary');
    }
  });

  test('are reported the tokens that a new password revoked, by services that report them', async () => {
    const both = { current_password: new Secret('current-canary'), new_password: new Secret('new-password-canary') };
    const token = { id: 4, name: 'ci', created_at, expires_at: null, last_used_at: null };
    const key = { id: 7, name: 'rack', network: { id: 1, name: 'office' } };
    const opened = { access_token: 'fresh-canary', expires_at: created_at };
    const made = { users_made: [user], keys_made: [{ ...key, uses: 0 }] };
    const reply = json(200, { data: { sessions_ended: 2, tokens_revoked: [token], ...made, ...opened } });

    const { value, request } = await ask(reply, (it) => it.changePassword({ ...both, keep_tokens: true }));
    const revoked = { sessions_ended: 2, tokens_revoked: [token], users_made: [user], keys_made: [key] };
    expect(value).toEqual({ ...revoked, ...opened, access_token: new Secret('fresh-canary') });
    expect(value?.access_token?.reveal()).toBe('fresh-canary');
    expect(JSON.parse(request?.body ?? '')).toMatchObject({ keep_tokens: true });
    for (const older of [json(200, { data: null }), json(200, { data: [] }), json(200, {})]) {
      const { value: none } = await ask(older, (it) => it.changePassword(both));
      expect(none).toEqual({ sessions_ended: null, tokens_revoked: null, users_made: null, keys_made: null });
    }
  });

  test.each([
    [without(user, 'id'), 'lacks users[0].id'],
    [without(user, 'email'), 'lacks users[0].email'],
    [without(user, 'created_at'), 'lacks users[0].created_at'],
    [{ ...user, role: 'king' }, 'users[0].role must be one of owner, admin, member, viewer'],
    [{ ...user, created_at: 'yesterday' }, 'users[0].created_at is not a timestamp'],
  ])('like %j are a BadReply', async (body, problem) => {
    const { failure } = await ask(json(200, { data: [body] }), (it) => it.listUsers());
    expect(failure).toBeInstanceOf(BadReply);
    expect(failure?.message).toContain(problem);
  });
});

describe('sessions', () => {
  const times = { created_at, expires_at: created_at, last_used_at: created_at };
  const session = { id: 5, device_name: 'laptop', ...times, address: null, is_current: true };

  test('are listed, and ended', async () => {
    const { value, request } = await ask(json(200, { data: [session] }), (it) => it.listSessions());
    expect([value, request]).toMatchObject([[session], { method: 'GET', path: '/api/auth/sessions' }]);
    const ended = await ask(json(200, {}), (it) => it.deleteSession(5));
    expect([ended.failure, ended.request]).toMatchObject([null, { method: 'DELETE', path: '/api/auth/sessions/5' }]);
  });

  test.each([404, 405])('are null from a service that answers %i', async (status) => {
    const { value, failure } = await ask(json(status, { message: 'Not Found' }), (it) => it.listSessions());
    expect([value, failure]).toEqual([null, null]);
  });
});

describe('personal tokens', () => {
  const token = { id: 4, name: 'ci', created_at, expires_at: null, last_used_at: null };

  test('are listed', async () => {
    const { value, request } = await ask(json(200, { data: [token] }), (it) => it.listTokens());
    expect(value).toEqual([token]);
    expect(request).toMatchObject({ method: 'GET', path: '/api/auth/tokens' });
  });

  test('are made: the value is a secret', async () => {
    const wanted = { name: 'ci', expires_in_days: 30 };
    const body = { data: { ...token, expires_at: created_at, access_token: 'cpt_new' } };
    const { value, request } = await ask(json(201, body), (it) => it.createToken(wanted));
    expect(value?.access_token.reveal()).toBe('cpt_new');
    expect(JSON.stringify(value)).not.toContain('cpt_new');
    expect(value).toMatchObject({ ...token, expires_at: created_at });
    expect([request?.method, request?.path, JSON.parse(request?.body ?? '')]).toEqual([
      'POST',
      '/api/auth/tokens',
      wanted,
    ]);
  });

  test('are made with a password, which a refusal does not show; it names the fields', async () => {
    const password = new Secret('password-canary');
    const reply = json(422, { message: 'password-canary', errors: { password: ['password-canary is wrong'] } });
    const { failure, request } = await ask(reply, (it) => it.createToken({ name: 'ci', password }));
    expect(JSON.parse(request?.body ?? '')).toEqual({ name: 'ci', password: 'password-canary' });
    expect(failure).toMatchObject({ name: 'Refused', fields: [{ field: 'password' }] });
    expect(failure?.message).not.toContain('canary');
  });

  test('are revoked', async () => {
    const { failure, request } = await ask(json(200, {}), (it) => it.deleteToken(4));
    expect([failure, request]).toMatchObject([null, { method: 'DELETE', path: '/api/auth/tokens/4' }]);
  });

  test.each([
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(121) }, 'name'],
    [{ name: 'ci', expires_in_days: 0 }, 'expires_in_days'],
    [{ name: 'ci', expires_in_days: 366 }, 'expires_in_days'],
  ])('are not made of %j', async (wanted, field) => {
    const { failure, asked } = await ask(json(201, {}), (it) => it.createToken(wanted));
    expect(failure).toMatchObject({ name: 'InvalidValue', field });
    expect(asked).toHaveLength(0);
  });

  test('without a value are a BadReply', async () => {
    const { failure } = await ask(json(201, { data: token }), (it) => it.createToken({ name: 'ci' }));
    expect(failure?.message).toContain('lacks access_token (it has: id, name, created_at, expires_at, last_used_at)');
  });
});

describe('the audit', () => {
  const entry = {
    id: 9,
    at: created_at,
    actor: { kind: 'user', id: 3, name: 'a@example.net' },
    action: 'network.update',
    target: { kind: 'network', id: 7, name: 'office' },
    address: '203.0.113.1',
    details: { name: 'office', routes: [] },
  };

  test.each([
    [undefined, '/api/audit'],
    [{ limit: 3 }, '/api/audit?limit=3'],
    [{ before: 9, limit: 3 }, '/api/audit?before=9&limit=3'],
  ])('is read: %j', async (page, path) => {
    const { value, request } = await ask(json(200, { data: [entry] }), (it) => it.readAudit(page));
    expect(value).toEqual([entry]);
    expect(request).toMatchObject({ method: 'GET', path });
  });

  test('is read in pages of 200, up to its limit or its end', async () => {
    const ids = Array.from({ length: 450 }, (_, index) => 450 - index);
    const { address, asked } = await serve((response, one) => {
      const query = new URL(one.path, 'http://x').searchParams;
      const older = ids.filter((id) => id < Number(query.get('before') ?? 451)).slice(0, Number(query.get('limit')));
      json(200, { data: older.map((id) => ({ ...entry, id })) })(response, one);
    });
    const service = connectAdminService(address, new Secret('token-sample'));
    const found = async (limit: number) => (await service.readAudit({ before: 441, limit })).map(({ id }) => id);
    expect(await found(250)).toEqual(ids.slice(10, 260));
    expect(await found(1000)).toEqual(ids.slice(10));
    expect(asked.map(({ path }) => path.replace('/api/audit?', ''))).toEqual([
      'before=441&limit=200',
      'before=241&limit=50',
      'before=441&limit=200',
      'before=241&limit=200',
      'before=41&limit=200',
    ]);
  });

  test('may lack actor and target names', async () => {
    const bare = {
      ...entry,
      actor: { kind: 'nobody', id: null, name: null },
      target: { kind: 'session', id: 4, name: null },
      address: null,
      details: {},
    };
    const { value } = await ask(json(200, { data: [without(bare, 'details')] }), (it) => it.readAudit());
    expect(value).toEqual([bare]);
  });

  test.each([
    [without(entry, 'action'), 'lacks audit[0].action'],
    [{ ...entry, actor: { kind: 'ghost' } }, 'audit[0].actor.kind must be one of user, peer'],
    [{ ...entry, target: null }, 'lacks audit[0].target'],
    [{ ...entry, details: 'all' }, 'audit[0].details is not an object'],
    [{ ...entry, id: {} }, 'audit[0].id is neither a number nor a word'],
  ])('of %j is a BadReply', async (body, problem) => {
    const { failure } = await ask(json(200, { data: [body] }), (it) => it.readAudit());
    expect(failure).toBeInstanceOf(BadReply);
    expect(failure?.message).toContain(problem);
  });
});

const questions: [string, (service: AdminService) => Promise<unknown>][] = [
  ['listUsers', (it) => it.listUsers()],
  ['createUser', (it) => it.createUser({ email: 'a@example.net', password, role: 'viewer' })],
  ['listTokens', (it) => it.listTokens()],
  ['createToken', (it) => it.createToken({ name: 'ci' })],
  ['readAudit', (it) => it.readAudit()],
  ['changePassword', (it) => it.changePassword({ current_password: password, new_password: password })],
];

test.each(questions)('%s of a service without this extension says that it offers none', async (_, question) => {
  for (const status of [404, 405]) {
    const { failure } = await ask(json(status, { message: 'Not Found' }), question);
    expect(failure).toBeInstanceOf(Refused);
    expect(failure?.message).toContain('the service offers no');
  }
});

test.each([
  ...questions,
  ['deleteUser', (it) => it.deleteUser(3)],
  ['deleteToken', (it) => it.deleteToken(4)],
  ['updateUser', (it) => it.updateUser(3, {})],
  ['listSessions', (it) => it.listSessions()],
  ['deleteSession', (it) => it.deleteSession(5)],
] satisfies typeof questions)('%s needs a login', async (_, question) => {
  const { address, asked } = await serve(json(200, {}));
  expect(await failureOf(question(connectAdminService(address, null)))).toBeInstanceOf(WrongUsage);
  expect(asked).toHaveLength(0);
});

test('with our own control plane: a user with a token of its own, until both are gone', async () => {
  const { url } = await startPlane();
  const address = { url, insecureHttp: false };
  const enter = async (email: string, word: Secret) =>
    connectAdminService(address, (await connectAdminService(address, null).login(email, word, 'test')).token);
  const admin = await enter(owner.email, new Secret(owner.password));

  const user = await admin.createUser({ email: 'ada@example.net', password, role: 'viewer' });
  expect(await admin.listUsers()).toContainEqual(expect.objectContaining({ id: user.id, email: user.email }));
  const ada = await enter(user.email, password);
  const token = await ada.createToken({ name: 'ci', expires_in_days: 1 });
  const script = connectAdminService(address, token.access_token);
  expect(await script.profile()).toMatchObject({ email: user.email, role: 'viewer' });
  expect(await ada.listTokens()).toMatchObject([{ id: token.id, name: 'ci', last_used_at: expect.any(String) }]);
  expect(await failureOf(script.listUsers())).toMatchObject({ name: 'Refused', status: 403 });
  await ada.deleteToken(token.id);
  expect(await failureOf(script.profile())).toMatchObject({ name: 'Refused', status: 401 });
  await admin.deleteUser(user.id);
  expect(await failureOf(ada.profile())).toMatchObject({ name: 'Refused', status: 401 });

  const actions = ['user.delete', 'token.revoke', 'token.create', 'login', 'user.create', 'login', 'user.create'];
  const audit = await admin.readAudit();
  expect(audit.map(({ action }) => action)).toEqual(actions);
  expect(await admin.readAudit({ before: audit[1]?.id ?? 0, limit: 2 })).toEqual(audit.slice(2, 4));
});
