import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import { connectPeerService } from '../described-service.ts';
import { enrollmentBody, enrollmentRequest, failureOf, networkBody, unhurried } from '../samples.ts';
import { json, type Reply, serve } from '../server.ts';

const token = new Secret('token-sample');

const redirect =
  (status: number, location: string): Reply =>
  (response) =>
    response.writeHead(status, { location }).end();

describe('a redirect', () => {
  test.each([300, 301, 302, 303, 307, 308])('of status %i is refused, and its target never asked', async (status) => {
    const second = await serve(json(201, { data: enrollmentBody() }));
    const first = await serve(redirect(status, `${second.url}/api/networks/enroll?key=canary`));
    const { options } = unhurried();
    const failure = await failureOf(connectPeerService(first.address, options).enroll(enrollmentRequest()));
    expect(failure).toBeInstanceOf(BadReply);
    expect(failure.message).toContain(`is a redirect (${status}) to ${second.url}/api/networks/enroll,`);
    expect(failure.message).not.toContain('canary');
    expect(first.asked).toHaveLength(1);
    expect(second.asked).toHaveLength(0);
  });

  test('within the same server is refused as well', async () => {
    const { address, asked } = await serve(redirect(308, '/elsewhere'), json(200, { data: networkBody() }));
    const failure = await failureOf(connectPeerService(address).readMap(7, token, null));
    expect(failure.message).toContain(`to ${address.url}/elsewhere`);
    expect(asked).toHaveLength(1);
  });

  test('of a deletion is not taken for its success', async () => {
    const { address } = await serve(redirect(302, '/login'));
    expect(await failureOf(connectAdminService(address, token).deleteNetwork(7))).toBeInstanceOf(BadReply);
  });

  test.each(['ftp://user:canary@example.net/', '//[', '/token-sample', '/token%2Dsample', '/%ff'])(
    'to %j is reported without secrets',
    async (location) => {
      const { address } = await serve(redirect(302, location));
      const failure = await failureOf(connectPeerService(address).readMap(7, token, null));
      expect(failure.message).toContain('is a redirect (302)');
      expect(failure.message).not.toMatch(/canary|token.+sample/);
    },
  );

  test('without a target, or an unrequested 304, is refused', async () => {
    for (const status of [302, 304]) {
      const { address } = await serve((response) => response.writeHead(status).end());
      const failure = await failureOf(connectPeerService(address).readMap(7, token, null));
      expect(failure).toBeInstanceOf(BadReply);
      expect(failure.message).toContain(`(${status}), and`);
    }
  });
});
