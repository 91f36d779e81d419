import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane, startPlane } from '../../harness.ts';
import { untagged } from '../../push/long-poll.ts';

let plane: Plane;
let token: string;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const create = (body: unknown) => plane.call('POST', '/api/networks', { token, body });
const read = (id: number, headers = {}) => plane.call('GET', `/api/networks/${id}`, { token, headers });
const change = (id: number, body: unknown) => plane.call('PATCH', `/api/networks/${id}`, { token, body });

describe('making a network', () => {
  test('answers with all its fields and nothing else', async () => {
    const reply = await create({ name: 'office', private_cidr: '10.77.0.0/24', unknown: 'ignored' });
    expect(reply.status).toBe(201);
    expect(reply.body).toEqual({
      data: {
        id: expect.any(Number),
        name: 'office',
        description: '',
        private_cidr: '10.77.0.0/24',
        routes: [],
        vpn_type: 'wireguard',
        revision: 1,
        etag: expect.stringMatching(/^"1-[\w-]{12}"$/),
        nonce: expect.stringMatching(/^[\w-]{12}$/),
        peers: [],
      },
    });
    expect((await read(reply.body.data.id)).body).toEqual(reply.body);
  });

  test('takes everything that may be said, to the limit', async () => {
    const routes = Array.from({ length: 50 }, (_, index) => `192.168.${index}.0/24`);
    const fields = { name: 'ü'.repeat(120), private_cidr: '10.0.0.0/8', description: '🙂'.repeat(1000), routes };
    const reply = await create({ ...fields, vpn_type: 'wireguard' });
    expect(reply.status).toBe(201);
    expect(reply.body.data).toMatchObject(fields);
  });

  test.each([
    [{}, ['name', 'private_cidr']],
    [{ name: 7 }, ['name']],
    [{ name: ' ' }, ['name']],
    [{ name: 'x'.repeat(121) }, ['name']],
    [{ description: 'x'.repeat(1001) }, ['description']],
    [{ private_cidr: '10.77.0.1/24' }, ['private_cidr']],
    [{ private_cidr: '11.0.0.0/24' }, ['private_cidr']],
    [{ private_cidr: 10 }, ['private_cidr']],
    [{ routes: '192.168.0.0/24' }, ['routes']],
    [{ routes: ['192.168.0.0/24', 7] }, ['routes']],
    [{ routes: ['10.77.0.0/16'] }, ['routes']],
    [{ routes: ['8.8.8.0/24'] }, ['routes']],
    [{ routes: Array(51).fill('192.168.0.0/24') }, ['routes']],
    [{ private_cidr: '11.0.0.0/24', routes: ['8.8.8.0/24'] }, ['private_cidr', 'routes']],
    [{ vpn_type: 'openvpn' }, ['vpn_type']],
  ])('%j is a 422 that names each field', async (fields, names) => {
    const whole = Object.keys(fields).length === 0 ? {} : { name: 'n', private_cidr: '10.77.0.0/24', ...fields };
    const reply = await create(whole);
    expect(reply.status).toBe(422);
    expect(Object.keys(reply.body.errors).sort()).toEqual(names);
    for (const rules of Object.values(reply.body.errors)) expect(rules).toEqual([expect.any(String)]);
  });

  test('public routes need the operator to allow them', async () => {
    const open = await startPlane({ allowPublicRoutes: true });
    const body = { name: 'exit', private_cidr: '10.77.0.0/24', routes: ['0.0.0.0/0', '8.8.8.0/24'] };
    const reply = await open.call('POST', '/api/networks', { token: await open.signIn('admin'), body });
    expect([reply.status, reply.body.data.routes]).toEqual([201, body.routes]);
    expect((await create(body)).status).toBe(422);
  });
});

describe('listing networks', () => {
  test('shows those of the organization, without peers', async () => {
    const other = await plane.signIn('owner', await plane.addOrganization('other'));
    const id = await makeNetwork(plane, other, { name: 'theirs' });
    await enroll(plane, await makeKey(plane, other, id));
    const reply = await plane.call('GET', '/api/networks', { token: other });
    expect(reply.status).toBe(200);
    expect(reply.body.data).toEqual([
      {
        id,
        name: 'theirs',
        description: '',
        private_cidr: '10.77.0.0/24',
        routes: [],
        vpn_type: 'wireguard',
        revision: 2,
      },
    ]);
    const ours = await plane.call('GET', '/api/networks', { token });
    expect(ours.body.data.map(({ id }: { id: number }) => id)).not.toContain(id);
  });
});

describe('reading a network', () => {
  test('has the revision as its strong ETag, and is a 304 for who has it', async () => {
    const id = await makeNetwork(plane, token);
    const first = await read(id);
    const etag = first.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"1-[\w-]{12}"$/);
    for (const header of [etag, `W/${etag}`, `"7", ${etag}`, '*']) {
      const same = await read(id, { 'if-none-match': header });
      expect([same.status, same.body, same.headers.get('etag')]).toEqual([304, undefined, etag]);
    }
    // Also of an older version, which had the number alone, and of another history.
    for (const header of ['"1"', '"1-another-one"', etag.replace('1-', '2-'), etag.slice(1, -1), '']) {
      expect((await read(id, { 'if-none-match': header })).status).toBe(200);
    }
    await change(id, { name: 'moved' });
    const next = await read(id, { 'if-none-match': etag });
    const outcome = [next.status, untagged(next.headers.get('etag')), next.body.data.revision];
    expect(outcome).toEqual([200, '"2"', 2]);
    expect(next.headers.get('etag')).not.toBe(etag.replace('1-', '2-'));
  });

  test.each(['0', '99999', 'office', '1e0', '0x1', '-1', '1.0', '9999999999999999999999'])(
    'the network %s is not there',
    async (id) => {
      const reply = await plane.call('GET', `/api/networks/${id}`, { token });
      expect([reply.status, reply.body]).toEqual([404, { message: 'there is no such network' }]);
    },
  );
});

describe('changing a network', () => {
  test('sets what is given, leaves the rest, and counts the revision up', async () => {
    const id = await makeNetwork(plane, token, { description: 'before', routes: ['192.168.1.0/24'] });
    const reply = await change(id, { routes: ['192.168.2.0/24'], private_cidr: '10.99.0.0/24' });
    expect(reply.status).toBe(200);
    expect(reply.body.data).toMatchObject({
      name: 'office',
      description: 'before',
      private_cidr: '10.77.0.0/24',
      routes: ['192.168.2.0/24'],
      revision: 2,
      peers: [],
    });
    const cleared = await change(id, { name: 'new', description: '', routes: [] });
    expect(cleared.body.data).toMatchObject({ name: 'new', description: '', routes: [], revision: 3 });
    expect((await read(id)).body).toEqual(cleared.body);
  });

  test('what is so already makes no revision', async () => {
    const id = await makeNetwork(plane, token);
    for (const body of [{}, { name: 'office' }, { routes: [], description: '' }]) {
      expect((await change(id, body)).body.data.revision).toBe(1);
    }
  });

  test.each([
    [{ name: '' }, 'name'],
    [{ routes: ['10.77.0.0/25'] }, 'routes'],
    [{ routes: ['192.168.1.1/24'] }, 'routes'],
    [{ description: 7 }, 'description'],
  ])('%j is a 422 and changes nothing', async (body, field) => {
    const id = await makeNetwork(plane, token);
    const reply = await change(id, body);
    expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, [field]]);
    expect((await read(id)).body.data.revision).toBe(1);
  });
});

test('removing a network takes its keys, peers and their tokens along', async () => {
  const id = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, id);
  const { body } = await enroll(plane, key);
  const reply = await plane.call('DELETE', `/api/networks/${id}`, { token });
  expect([reply.status, reply.body]).toEqual([200, { data: null }]);
  expect((await read(id)).status).toBe(404);
  expect((await enroll(plane, key)).status).toBe(401);
  expect((await plane.call('GET', `/api/networks/${id}`, { token: body.data.access_token })).status).toBe(401);
  expect((await plane.call('DELETE', `/api/networks/${id}`, { token })).status).toBe(404);
  expect(await makeNetwork(plane, token)).toBeGreaterThan(id);
});

describe('the longest age of a map', () => {
  test('is set and removed, makes revisions, and is in whole maps and changes', async () => {
    const id = await makeNetwork(plane, token);
    const etag = (await read(id)).headers.get('etag') ?? '';
    const set = await change(id, { map_max_age_seconds: 86_400 });
    expect([set.status, set.body.data.map_max_age_seconds, set.body.data.revision]).toEqual([200, 86_400, 2]);
    expect((await change(id, { name: 'other' })).body.data.map_max_age_seconds).toBe(86_400);
    const delta = await read(id, { 'a-im': 'cpn-delta', 'if-none-match': etag });
    expect([delta.status, delta.body.data.map_max_age_seconds]).toEqual([226, 86_400]);
    const unset = await change(id, { map_max_age_seconds: null });
    expect([unset.body.data.revision, 'map_max_age_seconds' in unset.body.data]).toEqual([4, false]);
  });

  test.each([299, 31_536_001, 300.5, '24h'])('of %j is a 422', async (age) => {
    const id = await makeNetwork(plane, token);
    const { status, body } = await change(id, { map_max_age_seconds: age });
    expect([status, Object.keys(body.errors)]).toEqual([422, ['map_max_age_seconds']]);
  });
});

describe('the spreading of hosts', () => {
  test('is set and removed, makes revisions, and is in whole maps, changes and the audit', async () => {
    const id = await makeNetwork(plane, token, { spread: true });
    const whole = await read(id);
    expect(whole.body.data.spread).toBe(true);
    const off = await change(id, { spread: false });
    expect([off.status, 'spread' in off.body.data, off.body.data.revision]).toEqual([200, false, 2]);
    expect((await change(id, { spread: false })).body.data.revision).toBe(2);
    expect((await change(id, { spread: true })).body.data.spread).toBe(true);
    const etag = whole.headers.get('etag') ?? '';
    const delta = await read(id, { 'a-im': 'cpn-delta', 'if-none-match': etag });
    expect([delta.status, delta.body.data.spread]).toEqual([226, true]);
    const { body } = await plane.call('GET', '/api/audit?per_page=1', { token });
    expect(body.data[0]).toMatchObject({ action: 'network.update', details: { spread: true } });
  });

  test.each([1, 'yes'])('of %j is a 422', async (spread) => {
    const id = await makeNetwork(plane, token);
    const { status, body } = await change(id, { spread });
    expect([status, Object.keys(body.errors)]).toEqual([422, ['spread']]);
  });
});
