import { describe, expect, test } from 'vitest';
import type { AdminService } from '../../src/api/admin-service.ts';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, InvalidValue, Refused } from '../../src/core/errors/index.ts';
import { failureOf, networkBody, peerBody, unhurried, without } from './samples.ts';
import { brokenOff, json, type Reply, serve } from './server.ts';

/** What a service that answers so is asked for, and what comes of it. */
async function ask<T>(question: (service: AdminService) => Promise<T>, ...replies: Reply[]) {
  const { address, asked } = await serve(...replies);
  const answer = question(connectAdminService(address, new Secret('token-sample'), unhurried().options));
  answer.catch(() => {});
  return { answer, asked };
}

describe('networks', () => {
  const changes = { description: 'd', routes: [] };

  test('are changed', async () => {
    const { answer, asked } = await ask((it) => it.updateNetwork(7, changes), json(200, { data: networkBody() }));
    expect(await answer).toEqual(networkBody());
    expect(asked).toMatchObject([{ method: 'PATCH', path: '/api/networks/7', body: JSON.stringify(changes) }]);
  });

  test('are changed again when the reply was lost', async () => {
    const { answer, asked } = await ask((it) => it.updateNetwork(7, changes), brokenOff, json(200, networkBody()));
    expect((await answer).id).toBe(7);
    expect(asked).toHaveLength(2);
  });

  test('are not changed to what the contract has no room for', async () => {
    const { answer, asked } = await ask((it) => it.updateNetwork(7, { name: '' }), json(200, {}));
    expect(await failureOf(answer)).toBeInstanceOf(InvalidValue);
    expect(asked).toHaveLength(0);
  });
});

describe('keys', () => {
  const key = { id: 5, name: 'rack 7', max_uses: 2, uses: 1, expires_at: '2026-03-02T12:00:00.000Z' };

  test('are listed', async () => {
    const { answer, asked } = await ask((it) => it.listKeys(7), json(200, { data: [key] }));
    expect(await answer).toEqual([key]);
    expect(asked).toMatchObject([{ method: 'GET', path: '/api/networks/7/enrollment-keys' }]);
    const all = await ask((it) => it.listKeys(7, { all: true }), json(200, { data: [key] }));
    expect(await all.answer).toEqual([key]);
    expect(all.asked).toMatchObject([{ path: '/api/networks/7/enrollment-keys?all=true' }]);
  });

  test('are listed by a service that tells less, but not without their ids', async () => {
    const { answer } = await ask((it) => it.listKeys(7), json(200, [{ id: 5, name: 'a' }]));
    expect(await answer).toEqual([{ id: 5, name: 'a', max_uses: null, uses: null, expires_at: null }]);
    const { answer: bad } = await ask((it) => it.listKeys(7), json(200, [key, without(key, 'id')]));
    const failure = await failureOf(bad);
    expect(failure).toBeInstanceOf(BadReply);
    expect(failure.message).toContain('lacks keys[1].id (it has: name, max_uses, uses, expires_at)');
  });

  test('are revoked', async () => {
    const { answer, asked } = await ask((it) => it.revokeKey(7, 5), json(200, {}));
    await answer;
    expect(asked).toMatchObject([{ method: 'DELETE', path: '/api/networks/7/enrollment-keys/5' }]);
  });
});

describe('peers', () => {
  test('are changed', async () => {
    const changes = { name: 'edge', endpoint: null, routes: null };
    const peer = peerBody(3, { routes: ['192.168.10.0/24'], endpoint: null });
    const { answer, asked } = await ask((it) => it.updatePeer(7, 'a/b', changes), json(200, { data: peer }));
    expect(await answer).toEqual(peer);
    expect(asked).toMatchObject([
      { method: 'PATCH', path: '/api/networks/7/peers/a%2Fb', body: JSON.stringify(changes) },
    ]);
  });

  test('of a reply that is none are refused', async () => {
    const { answer } = await ask((it) => it.updatePeer(7, 3, {}), json(200, without(peerBody(3), 'public_key')));
    expect((await failureOf(answer)).message).toContain('lacks peer.public_key');
  });
});

describe('a service that has only the contract', () => {
  test.each<[string, (service: AdminService) => Promise<unknown>]>([
    ['change networks', (it) => it.updateNetwork(7, {})],
    ['list keys', (it) => it.listKeys(7)],
    ['revoke keys', (it) => it.revokeKey(7, 5)],
    ['change peers', (it) => it.updatePeer(7, 3, {})],
  ])('is said to be unable to %s', async (what, question) => {
    for (const status of [404, 405]) {
      const { answer } = await ask(question, json(status, {}));
      const failure = await failureOf(answer);
      expect(failure).toBeInstanceOf(Refused);
      expect(failure.message).toContain(`this service cannot ${what}`);
    }
  });
});
