import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import { connectPeerService } from '../described-service.ts';
import { enrollmentRequest, failureOf } from '../samples.ts';
import { bytes, json, type Reply, serve, slowLoris } from '../server.ts';

const token = new Secret('token-sample');

async function enrolmentRefused(reply: Reply) {
  const { address } = await serve(reply);
  const failure = await failureOf(connectPeerService(address, { deadlineMs: 5_000 }).enroll(enrollmentRequest()));
  expect(failure).toBeInstanceOf(Refused);
  return failure.message;
}

describe('a refusal', () => {
  test("says what was refused, the server's reason, and what to do", async () => {
    expect(await enrolmentRefused(json(403, { message: 'The key is used up.' }))).toBe(
      'the enrolment was refused (403): The key is used up; make a new key with "cpn key create"',
    );
  });

  test('names the fields of a 422', async () => {
    const errors = { name: ['must not be empty', 'must be text'], endpoint: ['is loopback'] };
    const message = await enrolmentRefused(json(422, { message: 'Two fields are wrong', errors }));
    expect(message).toContain(
      'Two fields are wrong (name: must not be empty, must be text; endpoint: is loopback); correct these values',
    );
  });

  test('names a field once where the message names it too', async () => {
    const errors = { name: ['must not be empty'], endpoint: ['"x" is no endpoint'] };
    const message = await enrolmentRefused(json(422, { message: 'a rule for name, endpoint', errors }));
    expect(message).toContain('(422): name: must not be empty; endpoint: "x" is no endpoint; correct these values');
  });

  test('tells the whole of a rule, with its remedy', async () => {
    const rule =
      'endpoint "192.168.50.77:51820" lies in the route 192.168.50.0/24, which leads into the tunnel; give an address outside the network, or none';
    const message = await enrolmentRefused(json(422, { message: 'A field is wrong', errors: { endpoint: [rule] } }));
    expect(message).toMatch(/an address outside the network, or none\)$/);
    expect(message).toContain(`(endpoint: ${rule})`);
  });

  test.each([
    ['no JSON', bytes(403, 'no', { 'content-type': 'text/html' })],
    ['broken JSON', bytes(403, '{')],
    ['a list', json(403, ['no'])],
    ['no message', json(403, { error: 7 })],
    ['a message that is no text', json(403, { message: { text: 'no' }, errors: 'none' })],
    ['64 KiB and more', json(403, { message: 'a'.repeat(70_000) })],
    ['no end', slowLoris(403)],
  ] satisfies [string, Reply][])('with %s is reported by its status', async (_, reply) => {
    const { address } = await serve(reply);
    const failure = await failureOf(connectPeerService(address, { deadlineMs: 2_000 }).enroll(enrollmentRequest()));
    expect(failure.message).toContain('(403): Forbidden;');
  });

  test('is short and obeys no terminal, whatever the server writes', async () => {
    const errors = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`field${n}\u001b[2J`, ['b'.repeat(500)]]));
    const message = await enrolmentRefused(json(422, { message: `\u001b[31m\n\u202e${'a'.repeat(5_000)}`, errors }));
    expect(message.length).toBeLessThan(1_500);
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(message).toContain('field4');
    expect(message).not.toContain('field5');
  });

  test.each([
    [401, 'cpn key create'],
    [403, 'cpn key create'],
    [404, '--api'],
    [409, 'read the present state, and repeat the change if it is still needed'],
    [413, 'send a smaller request'],
    [422, 'check the values of the command'],
    [418, '--api'],
  ])('of an enrolment with %i tells to %s', async (status, remedy) => {
    expect(await enrolmentRefused(json(status, { message: 'no' }))).toContain(remedy);
  });

  test.each([401, 403, 404])("of a host's own map with %i says that the tunnel stays", async (status) => {
    const { address } = await serve(json(status, { message: 'no' }));
    const failure = await failureOf(connectPeerService(address).readMap(7, token, null));
    expect(failure.message).toContain(`reading network 7 was refused (${status}): no; the tunnel stays as it is`);
  });

  test('of a suspended host has the one hint of the control plane', async () => {
    const message = 'this peer is suspended; an admin resumes it with "cpn peer resume"';
    const { address } = await serve(json(403, { message }));
    const failure = await failureOf(connectPeerService(address).readMap(7, token, null));
    expect(failure.message).toBe(`reading network 7 was refused (403): ${message}`);
  });

  test.each([401, 403, 405])('of a removal with %i says nothing of a tunnel that stays', async (status) => {
    const { address } = await serve(json(status, { message: 'no' }));
    const { message } = await failureOf(connectPeerService(address).removePeer(7, 1, token));
    expect(message).toContain(`removing peer 1 of network 7 was refused (${status}): no; `);
    expect(message).not.toMatch(/tunnel|cpn login|your role/);
  });

  test.each([
    [401, 'cpn login'],
    [403, 'owner or an admin'],
    [404, 'cpn network list'],
  ])('of an administrator with %i tells of %s', async (status, remedy) => {
    const { address } = await serve(json(status, { message: 'no' }));
    expect((await failureOf(connectAdminService(address, token).readNetwork(7))).message).toContain(remedy);
  });

  test.each([
    ['the role viewer may not do this; ask one of: owner, admin', ''],
    ['This action is unauthorized.', '; ask an owner or an admin'],
    [undefined, '; your role does not allow it; ask an owner or an admin'],
  ])('of an administrator with 403 and %j ends with %j', async (message, tail) => {
    const { address } = await serve(json(403, { message }));
    const reason = message?.replace(/\.$/, '') ?? 'Forbidden';
    expect((await failureOf(connectAdminService(address, token).readNetwork(7))).message).toBe(
      `reading network 7 was refused (403): ${reason}${tail}`,
    );
  });

  test.each([
    [401, 'no', /; check the email and the password$/],
    [401, 'a two-factor code is needed', /; with two-factor authentication, make a personal token/],
    [403, 'no', /personal token/],
  ])('of a login with %i and %j ends with %s', async (status, message, remedy) => {
    const { address } = await serve(json(status, { message }));
    const login = connectAdminService(address, null).login('a@example.net', new Secret('pw'), 'laptop');
    expect((await failureOf(login)).message).toMatch(remedy);
  });
});
