import { Secret as Key, TOTP } from 'otpauth';
import { expect, test } from 'vitest';
import { resetOwner } from '../../src/control-plane/reset-owner.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { WrongUsage } from '../../src/core/errors/index.ts';
import { databaseFor } from './databases.ts';
import { makeFolder, makeKey, makeNetwork, openPlane, owner, type Plane, startPlane } from './harness.ts';

const password = 'another long password';
const reset = async (dataDir: string, email = owner.email, word = password, keepsTokens = false) =>
  resetOwner(
    { dataDir, database: await databaseFor(dataDir), passwordCost: { N: 16, r: 1, p: 1 } },
    { email, password: new Secret(word) },
    { keepsTokens },
  );
const login = (plane: Plane, word: string) =>
  plane.call('POST', '/api/auth/login', { body: { email: owner.email, password: word } });

test('an owner gets a new password while the control plane serves; its sessions end, its tokens are revoked', async () => {
  const plane = await startPlane();
  const token = (await login(plane, owner.password)).body.data.access_token;
  const other = await plane.signIn('owner');
  const made = (await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } })).body.data;
  const personal = made.access_token;
  const revoked = [{ id: made.id, name: 'ci' }];
  // Others write meanwhile.
  const writes = Array.from({ length: 20 }, (_, index) =>
    plane.call('POST', '/api/networks', { token: other, body: { name: 'n', private_cidr: `10.${index}.0.0/24` } }),
  );
  expect(await reset(plane.dataDir, owner.email.toUpperCase())).toEqual({
    email: owner.email,
    factorsRemoved: 0,
    sessionsEnded: 1,
    tokensRevoked: revoked,
    personalTokens: 0,
    made: { users_made: [], keys_made: [] },
    database: expect.any(String),
  });
  expect((await Promise.all(writes)).map(({ status }) => status)).toEqual(Array(20).fill(201));
  const status = async (as: string) => (await plane.call('GET', '/api/auth/me', { token: as })).status;
  expect([await status(token), await status(personal), await status(other)]).toEqual([401, 401, 200]);
  expect([(await login(plane, owner.password)).status, (await login(plane, password)).status]).toEqual([401, 200]);
  const audit = (await plane.call('GET', '/api/audit', { token: other })).body.data;
  expect(audit.find(({ action }: { action: string }) => action === 'password.reset')).toMatchObject({
    actor: { kind: 'system', id: null, name: null },
    target: { kind: 'user', name: owner.email },
    address: null,
    details: { sessions_ended: 1, tokens_revoked: revoked },
  });
});

test('the second factors of the owner are removed', async () => {
  const plane = await startPlane();
  const token = (await login(plane, owner.password)).body.data.access_token;
  const begun = await plane.call('POST', '/api/auth/factors/challenges', { token, body: { kind: 'totp' } });
  const { challenge, secret } = begun.body.data;
  const code = new TOTP({ secret: Key.fromBase32(secret) }).generate({ timestamp: plane.clock.now().getTime() });
  const added = await plane.call('POST', '/api/auth/factors', { token, body: { challenge, name: 'phone', code } });
  expect([added.status, (await login(plane, owner.password)).status]).toEqual([201, 403]);
  expect(await reset(plane.dataDir)).toMatchObject({ factorsRemoved: 1 });
  const session = (await login(plane, password)).body.data.access_token;
  const factors = await plane.call('GET', '/api/auth/factors', { token: session });
  expect(factors.body.data).toMatchObject({ factors: [], recovery_codes_left: 0 });
  const [entry] = (await plane.call('GET', '/api/audit', { token: session })).body.data.filter(
    ({ action }: { action: string }) => action === 'password.reset',
  );
  expect(entry.details).toMatchObject({ factors_removed: 1 });
});

test('tokens stay valid on request', async () => {
  const plane = await startPlane();
  const token = (await login(plane, owner.password)).body.data.access_token;
  const body = { name: 'ci' };
  const personal = (await plane.call('POST', '/api/auth/tokens', { token, body })).body.data.access_token;
  const done = await reset(plane.dataDir, owner.email, password, true);
  expect(done).toMatchObject({ tokensRevoked: [], personalTokens: 1 });
  expect((await plane.call('GET', '/api/auth/me', { token: personal })).status).toBe(200);
});

test('what the owner made is listed, because a holder of its credentials may have made it', async () => {
  // The database's own time decides which keys are usable.
  const plane = await startPlane({ now: () => new Date() });
  const token = (await login(plane, owner.password)).body.data.access_token;
  const ghost = { email: 'ghost@example.net', password, role: 'owner' };
  const user = (await plane.call('POST', '/api/users', { token, body: ghost })).body.data;
  const network = await makeNetwork(plane, token);
  await makeKey(plane, token, network);
  const { made } = await reset(plane.dataDir);
  expect(made.users_made).toEqual([{ ...user, networks: undefined }]);
  expect(made.keys_made).toMatchObject([{ name: 'rack', network: { id: network, name: 'office' } }]);
});

test('a reset needs no running control plane', async () => {
  const dataDir = makeFolder();
  await (await openPlane({ dataDir })).server.close();
  expect(await reset(dataDir)).toMatchObject({ sessionsEnded: 0, personalTokens: 0 });
  const plane = await startPlane({ dataDir });
  expect([(await login(plane, owner.password)).status, (await login(plane, password)).status]).toEqual([401, 200]);
});

test('a database that no control plane served from is named, with the remedy', async () => {
  const dataDir = makeFolder();
  const isFile = (await databaseFor(dataDir)) === null;
  await expect(reset(dataDir)).rejects.toMatchObject(
    isFile
      ? { name: 'WrongUsage', message: expect.stringContaining(dataDir) }
      : {
          name: 'UnusableDatabase',
          isRetryable: false,
          message: expect.stringMatching(
            /no control plane served from it yet; .*"cpn control-plane serve" makes its tables/,
          ),
        },
  );
});

test('who is no owner gets none, nor does an owner a short one', async () => {
  const plane = await startPlane();
  const member = await plane.signIn('member');
  const { email } = (await plane.call('GET', '/api/auth/me', { token: member })).body.data;
  for (const wrong of [email, 'unknown@example.net']) {
    const refused = reset(plane.dataDir, wrong);
    await expect(refused).rejects.toThrow(WrongUsage);
    await expect(refused).rejects.toThrow(`"${wrong}" is not an owner here; the owners are: ${owner.email}`);
  }
  await expect(reset(plane.dataDir, owner.email, 'short')).rejects.toThrow(/--password-file must be at least 12/);
  expect((await login(plane, owner.password)).status).toBe(200);
  expect((await plane.call('GET', '/api/auth/me', { token: member })).status).toBe(200);
});
