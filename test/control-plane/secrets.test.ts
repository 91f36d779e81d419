import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { postgres } from './databases.ts';
import { enroll, makeKey, makeNetwork, owner, type Plane, publicKey, startPlane } from './harness.ts';

/** Every secret that a day's work brings about, by what it is. */
async function work(plane: Plane): Promise<Record<string, string>> {
  const login = async () => (await plane.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
  const session = await login();
  const ended = await login();
  await plane.call('POST', '/api/auth/logout', { token: ended });
  await plane.call('POST', '/api/auth/login', { body: { ...owner, password: 'wrong-password-canary' } });
  const network = await makeNetwork(plane, session);
  const body = { email: 'ada@example.net', password: 'new-user-password-canary', role: 'viewer' };
  await plane.call('POST', '/api/users', { token: session, body });
  await plane.call('POST', '/api/users', { token: session, body: { ...body, role: 'role-canary' } });
  const made = await plane.call('POST', '/api/auth/tokens', { token: session, body: { name: 'ci' } });
  const personal = made.body.data.access_token;
  await plane.call('GET', '/api/audit', { token: personal });
  await plane.call('GET', '/api/audit', { token: 'cpt_unknown-personal-canary' });
  const key = await makeKey(plane, session, network);
  const replayed = { public_key: publicKey() };
  await enroll(plane, key, replayed, 'idempotency-canary');
  const peer = (await enroll(plane, key, replayed, 'idempotency-canary')).body.data.access_token;
  const plainPeer = (await enroll(plane, key)).body.data.access_token;
  await plane.call('GET', `/api/networks/${network}?token=query-canary`, { token: peer });
  await plane.call('GET', '/nowhere/path-canary', { token: 'cpu_unknown-token-canary' });
  await enroll(plane, 'cpn_unknown-key-canary');
  await plane.call('POST', '/api/networks/enroll', { raw: '{"enrollment_token": "cpn_broken-body-canary"' });
  return {
    ...{ session, ended, key, peer, plainPeer, password: owner.password, wrong: 'wrong-password-canary' },
    ...{ idempotency: 'idempotency-canary', unknownToken: 'unknown-token-canary', unknownKey: 'unknown-key-canary' },
    ...{ personal, newPassword: body.password, unknownPersonal: 'unknown-personal-canary' },
    ...{ query: 'query-canary', path: 'path-canary', body: 'broken-body-canary' },
  };
}

test('neither the files of the database nor the log hold a token, a key or a password', async () => {
  const plane = await startPlane();
  const secrets = await work(plane);
  // Reading the files in this process would drop SQLite's locks on them.
  const files = postgres === null ? plane.dataDir : join(postgres.socket, 'data');
  const patterns = [owner.email, ...Object.values(secrets)];
  const argv = ['--recursive', '--text', '--fixed-strings', '--only-matching', '--no-filename', '--file=-', files];
  const { stdout } = spawnSync('grep', argv, { input: patterns.join('\n'), encoding: 'utf8' });
  const inFiles = new Set(stdout.split('\n'));
  expect(inFiles).toContain(owner.email);
  expect(plane.log()).toContain(owner.email);
  expect(plane.log()).toContain('/api/networks/enroll');
  for (const [what, secret] of Object.entries(secrets)) {
    expect([what, inFiles.has(secret)]).toEqual([what, false]);
    expect([what, plane.log().includes(secret)]).toEqual([what, false]);
  }
});

test('log messages are constant; what differs stands in fields', async () => {
  const plane = await startPlane();
  await work(plane);
  const lines = plane
    .log()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  // The server of these tests has other roles, and PostgreSQL lets all of them connect by default.
  const messages = new Set(lines.map(({ msg }) => msg));
  messages.delete('any role of the PostgreSQL server may connect to the database');
  expect(messages).toEqual(new Set(['first owner made', 'listening', 'request answered']));
  expect(lines).toContainEqual(
    expect.objectContaining({ method: 'POST', route: '/api/auth/login', status: 401, address: '127.0.0.1' }),
  );
});
