import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CannotListen } from '../../src/control-plane/errors.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { WrongUsage } from '../../src/core/errors/index.ts';
import { makeFolder, openPlane, owner, startPlane, withDatabase } from './harness.ts';

describe('the first owner', () => {
  test('must be named when there is no user', async () => {
    const refused = openPlane({ owner: null });
    await expect(refused).rejects.toThrow(WrongUsage);
    await expect(refused).rejects.toThrow(/--owner-email.*--owner-password-file/);
  });

  test.each([
    ['no e-mail address', { email: 'owner', password: new Secret('x') }],
    ['no password', { email: owner.email, password: new Secret('') }],
    ['a short password', { email: owner.email, password: new Secret('eleven char') }],
  ])('needs more than %s', async (_what, first) => {
    const refused = openPlane({ owner: first });
    await expect(refused).rejects.toThrow(WrongUsage);
    if (first.email === 'owner') await expect(refused).rejects.toThrow('--owner-email "owner" is not an e-mail');
  });

  test('that is refused leaves no data folder', async () => {
    const dataDir = join(makeFolder(), 'new');
    await expect(
      openPlane({ dataDir, owner: { email: 'owner', password: new Secret('long enough for it') } }),
    ).rejects.toThrow(WrongUsage);
    await expect(openPlane({ dataDir, owner: null })).rejects.toThrow(WrongUsage);
    expect(existsSync(dataDir)).toBe(false);
  });

  test('is made once: later ones are not, and the password stays', async () => {
    const dataDir = makeFolder();
    const first = await openPlane({ dataDir });
    await first.server.close();
    const again = await startPlane({ dataDir, owner: { email: 'thief@example.net', password: new Secret('x') } });
    const login = (body: object) => again.call('POST', '/api/auth/login', { body });
    expect((await login({ email: 'thief@example.net', password: 'x' })).status).toBe(401);
    expect((await login(owner)).status).toBe(200);
    expect(again.log()).toMatch(/"email":"thief@example.net".*first owner not made/);
    expect(first.log()).not.toContain('first owner not made');
  });
});

describe('listening', () => {
  test('on a port that is taken is an error that names it, and leaves nothing held', async () => {
    const taken = await startPlane();
    const port = Number(new URL(taken.url).port);
    const dataDir = makeFolder();
    const refused = openPlane({ dataDir, port });
    await expect(refused).rejects.toThrow(CannotListen);
    await expect(refused).rejects.toMatchObject({ isRetryable: true });
    await expect(refused).rejects.toThrow(`port ${port}`);
    expect((await (await startPlane({ dataDir })).call('GET', '/healthz')).status).toBe(200);
  });

  test('is on the address asked for alone', async () => {
    const { url } = await startPlane();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const socket = connect(Number(new URL(url).port), '127.0.0.2');
    await expect(new Promise((resolve, reject) => socket.on('connect', resolve).on('error', reject))).rejects.toThrow(
      /ECONNREFUSED/,
    );
  });

  test('ends with close, which may be called twice and lets the next one in', async () => {
    const dataDir = makeFolder();
    const plane = await openPlane({ dataDir });
    const token = await plane.signIn('owner');
    await Promise.all([plane.server.close(), plane.server.close()]);
    await expect(plane.call('GET', '/healthz')).rejects.toThrow();
    expect(existsSync(join(dataDir, 'control-plane.db-wal'))).toBe(false);
    const again = await startPlane({ dataDir, owner: null });
    expect((await again.call('GET', '/api/auth/me', { token })).status).toBe(200);
  });
});

describe('every reply', () => {
  test('forbids to guess its type, to keep it and to frame it', async () => {
    const plane = await startPlane();
    for (const path of ['/healthz', '/nowhere', '/api/networks']) {
      const { headers } = await plane.call('GET', path);
      expect(Object.fromEntries(headers)).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'content-type': 'application/json; charset=utf-8',
      });
    }
  });

  test('is a 404 with the body of an error for an unknown path', async () => {
    const plane = await startPlane();
    for (const [method, path] of [
      ['GET', '/api/networks/%zz'],
      ['GET', `/api/networks/${'9'.repeat(200)}`],
    ] as const) {
      const { status, body } = await plane.call(method, path);
      expect([path, status, body]).toEqual([path, 404, { message: 'there is no such path' }]);
    }
  });

  test('names the methods of a path for OPTIONS, and is a 404 for an unknown path', async () => {
    const plane = await startPlane();
    for (const [path, allow] of [
      ['/api/networks?name=x', 'GET, HEAD, OPTIONS, POST'],
      ['/api/networks/1', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
      ['/api/networks/enroll', 'OPTIONS, POST'],
      ['/healthz', 'GET, HEAD, OPTIONS'],
    ] as const) {
      const { status, headers } = await plane.call('OPTIONS', path);
      expect([path, status, headers.get('allow')]).toEqual([path, 204, allow]);
    }
    expect((await plane.call('OPTIONS', '/api/nowhere')).status).toBe(404);
  });

  test('is a 405 for a method that a path does not take, also where the path fits one with a parameter', async () => {
    const plane = await startPlane();
    for (const [method, path, allow] of [
      ['GET', '/api/networks/enroll', 'OPTIONS, POST'],
      ['PATCH', '/api/networks/enroll', 'OPTIONS, POST'],
      ['PUT', '/api/networks/1', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
      ['POST', '/readyz', 'GET, HEAD, OPTIONS'],
    ] as const) {
      const { status, headers } = await plane.call(method, path);
      expect([method, path, status, headers.get('allow')]).toEqual([method, path, 405, allow]);
    }
  });

  test.each(['gzip', 'identity, br'])('to a body with Content-Encoding %s is a 415 that says so', async (encoding) => {
    const plane = await startPlane();
    const request = { body: owner, headers: { 'content-encoding': encoding } };
    const { status, headers, body } = await plane.call('POST', '/api/auth/login', request);
    expect([status, body]).toEqual([
      415,
      { message: `the body of the request has Content-Encoding "${encoding}"; send it without one` },
    ]);
    expect(headers.get('accept-encoding')).toBe('identity');
    const plain = { body: owner, headers: { 'content-encoding': 'Identity' } };
    expect((await plane.call('POST', '/api/auth/login', plain)).status).toBe(200);
  });

  test('tells nothing of an internal failure, whose reason is in the log', async () => {
    const plane = await startPlane();
    const token = await plane.signIn('owner');
    await withDatabase(plane.dataDir, (db) => db.schema.dropTable('enrollments').execute());
    await withDatabase(plane.dataDir, (db) => db.schema.alterTable('peers').renameTo('hidden').execute());
    await plane.call('POST', '/api/networks', { token, body: { name: 'n', private_cidr: '10.0.0.0/24' } });
    const { status, body } = await plane.call('GET', '/api/networks/1', { token });
    expect([status, body]).toEqual([500, { message: 'the control plane failed; its log says why' }]);
    expect(plane.log()).toMatch(
      /"level":50.*(no such table: peers|relation \\"peers\\" does not exist).*"msg":"request failed"/,
    );
  });
});

test('health needs no token', async () => {
  const plane = await startPlane();
  expect(await plane.call('GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
});
