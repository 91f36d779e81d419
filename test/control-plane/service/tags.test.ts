import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane, publicKey } from '../harness.ts';

let plane: Plane;
let token: string;
let network: number;
beforeAll(async () => {
  plane = await openPlane();
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  token = await plane.signIn('admin');
  network = await makeNetwork(plane, token);
});

const path = () => `/api/networks/${network}`;
const change = (id: number, body: object, by = token) =>
  plane.call('PATCH', `${path()}/peers/${id}`, { token: by, body });
const add = async (key: object = {}, fields: object = {}) =>
  (await enroll(plane, await makeKey(plane, token, network, key), fields)).body.data;
const newKey = (body: object, by = token) =>
  plane.call('POST', `${path()}/enrollment-keys`, { token: by, body: { name: 'rack', ...body } });

describe('the tags of a peer', () => {
  test('are set, changed and removed by an admin, each with a revision and an entry in the audit', async () => {
    const { peer } = await add();
    expect(peer).not.toHaveProperty('tags');
    const set = await change(peer.id, { tags: ['web', 'db', 'web'] });
    expect([set.status, set.body.data.tags]).toEqual([200, ['db', 'web']]);
    const { body } = await plane.call('GET', path(), { token });
    expect([body.data.revision, body.data.peers[0].tags]).toEqual([3, ['db', 'web']]);
    expect((await change(peer.id, { tags: ['db', 'web'] })).status).toBe(200);
    const audit = await plane.call('GET', '/api/audit?action=peer.update', { token });
    expect(audit.body.data[0].details).toEqual({ network, tags: ['db', 'web'] });
    expect((await change(peer.id, { name: 'other' })).body.data.tags).toEqual(['db', 'web']);
    expect((await change(peer.id, { tags: [] })).body.data).not.toHaveProperty('tags');
  });

  test.each([
    ['owner', 200],
    ['member', 403],
    ['viewer', 403],
  ] as const)('set by an %s are answered with %i', async (role, status) => {
    const { peer } = await add();
    const by = await plane.signIn(role);
    expect((await change(peer.id, { tags: ['web'] }, by)).status).toBe(status);
    expect((await newKey({ tags: ['web'] }, by)).status).toBe(status === 200 ? 201 : 403);
    if (role === 'member') expect((await newKey({}, by)).status).toBe(201);
  });

  test('are not changed by the peer itself, nor by a member who once was an admin', async () => {
    const { peer, access_token } = await add();
    const own = await change(peer.id, { tags: ['web'] }, access_token);
    expect([own.status, own.body.message]).toEqual([403, 'a peer may not change its tags; ask an owner or admin']);
  });

  test.each([[['Web']], [['-web']], [['web-']], [['wéb']], [['']], [['a'.repeat(64)]]])('%j is a 422', async (tags) => {
    const { peer } = await add();
    for (const reply of [await change(peer.id, { tags }), await newKey({ tags })])
      expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['tags']]);
  });

  test('are at most 16', async () => {
    const { peer } = await add();
    const tags = Array.from({ length: 17 }, (_, index) => `tag-${index}`);
    expect((await change(peer.id, { tags })).body.errors).toEqual({ tags: ['must be at most 16 tags'] });
    expect((await change(peer.id, { tags: tags.slice(1) })).status).toBe(200);
  });
});

describe('an enrolment key with tags', () => {
  test('gives them to its peers, and lists them', async () => {
    const key = await newKey({ tags: ['web', 'edge'], max_uses: 2 });
    expect(key.body.data.tags).toEqual(['edge', 'web']);
    const listed = await plane.call('GET', `${path()}/enrollment-keys`, { token });
    expect(listed.body.data[0].tags).toEqual(['edge', 'web']);
    const { body } = await enroll(plane, key.body.data.enrollment_token, { tags: ['admin'] });
    expect(body.data.peer.tags).toEqual(['edge', 'web']);
    const audit = await plane.call('GET', '/api/audit?action=peer.enroll', { token });
    expect(audit.body.data[0].details.tags).toEqual(['edge', 'web']);
  });
});

describe('a host', () => {
  test('that states at its enrolment that it enforces rules is marked so', async () => {
    expect((await add({}, { enforces_rules: true })).peer.enforces_rules).toBe(true);
    expect((await add({}, { public_key: publicKey() })).peer).not.toHaveProperty('enforces_rules');
  });
});
