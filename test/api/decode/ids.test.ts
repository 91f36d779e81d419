import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Id } from '../../../src/core/map/model.ts';
import { formatState, parseState } from '../../../src/store/state/state-file.ts';
import { joinedTo, mapAt } from '../../app/joined-state.ts';
import { json, startForeignService } from '../../plain/foreign-service.ts';
import { connectPeerService } from '../described-service.ts';
import { networkBody, peerBody } from '../samples.ts';

const token = new Secret('t');
const at = '2026-01-01T00:00:00Z';

/** What a service may call things by. */
const ids: [string, Id, string][] = [
  ['a UUID', '6f1c2e0a-9d7b-4c5e-8a3f-0123456789ab', '6f1c2e0a-9d7b-4c5e-8a3f-0123456789ab'],
  ['a word with a slash', 'net/7?x#y', 'net%2F7%3Fx%23y'],
  ['zero', 0, '0'],
  ['a negative number', -7, '-7'],
  ['a fraction', 7.5, '7.5'],
];

describe.each(ids)('%s is an id like any other:', (_, id, segment) => {
  test('networks and peers are read and removed by it', async () => {
    const service = await startForeignService();
    const body = { data: networkBody({ id, peers: [peerBody(1, { id })] }) };
    service.answers[`GET /api/networks/${segment}`] = (response) => json(response, 200, body);
    service.answers[`DELETE /api/networks/${segment}/peers/${segment}`] = (response) =>
      json(response, 200, { data: null });
    const peers = connectPeerService(service.address);
    const { map } = await peers.readMap(id, token, null);
    expect(map).toMatchObject({ id, peers: [{ id }] });
    expect(await peers.removePeer(id, id, token)).toBe(true);
    expect(await connectAdminService(service.address, token).readNetwork(id)).toMatchObject({ id, peers: [{ id }] });
  });

  test('keys, users and tokens are listed and removed by it', async () => {
    const service = await startForeignService();
    const user = { id, email: 'a@example.net', role: 'owner', created_at: at };
    const entry = {
      id,
      at,
      actor: { kind: 'user', id, name: 'a' },
      action: 'x',
      target: { kind: 'user', id, name: 'b' },
    };
    const answers: Record<string, unknown> = {
      [`GET /api/networks/${segment}/enrollment-keys`]: { data: [{ id, name: 'k' }] },
      [`DELETE /api/networks/${segment}/enrollment-keys/${segment}`]: {},
      'GET /api/users': { data: [user] },
      [`DELETE /api/users/${segment}`]: {},
      'GET /api/auth/tokens': { data: [{ id, name: 't', created_at: at }] },
      [`DELETE /api/auth/tokens/${segment}`]: {},
      'GET /api/audit': { data: [entry] },
    };
    for (const [request, body] of Object.entries(answers)) {
      service.answers[request] = (response) => json(response, 200, body);
    }
    const admin = connectAdminService(service.address, token);
    const listed = [admin.listKeys(id), admin.listUsers(), admin.listTokens(), admin.readAudit()];
    expect(await Promise.all(listed)).toMatchObject([[{ id }], [{ id }], [{ id }], [{ id, actor: { id } }]]);
    await Promise.all([admin.revokeKey(id, id), admin.deleteUser(id), admin.deleteToken(id)]);
  });

  test('a state file keeps it', () => {
    const state = joinedTo(mapAt(null, [], { id }));
    expect(parseState(formatState(state)).membership?.map.id).toBe(id);
  });
});

test('a number that JavaScript would round stays as it was written', async () => {
  const service = await startForeignService();
  const text = JSON.stringify({ data: networkBody({ id: 'ID', peers: [peerBody(1)] }) }).replace(
    '"ID"',
    '9007199254740993',
  );
  service.answers['GET /api/networks/9007199254740993'] = (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  const { map } = await connectPeerService(service.address).readMap('9007199254740993', token, null);
  expect(map?.id).toBe('9007199254740993');
});
