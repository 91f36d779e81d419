import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, enroll, hour, makeNetwork, openPlane, type Plane, startPlane } from '../../harness.ts';

let plane: Plane;
let token: string;
let network: number;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('member');
});
afterAll(() => closePlane(plane));

const path = () => `/api/networks/${network}/enrollment-keys`;
const create = (body: unknown) => plane.call('POST', path(), { token, body });

test('a key is made, shown once, listed without its token, used and revoked', async () => {
  network = await makeNetwork(plane, token);
  const made = await create({ name: 'rack 7' });
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    data: {
      id: expect.any(Number),
      name: 'rack 7',
      enrollment_token: expect.stringMatching(/^cpn_[\w-]{43}$/),
      max_uses: 1,
      uses: 0,
      expires_at: '2030-01-02T00:00:00.000Z',
    },
  });
  const { enrollment_token, ...shown } = made.body.data;
  expect((await enroll(plane, enrollment_token)).status).toBe(201);
  expect((await plane.call('GET', path(), { token })).body.data).toEqual([]);
  const listed = await plane.call('GET', `${path()}?all=true`, { token });
  expect([listed.status, listed.body.data]).toEqual([200, [{ ...shown, uses: 1 }]]);

  const revoked = await plane.call('DELETE', `${path()}/${shown.id}`, { token });
  expect([revoked.status, revoked.body]).toEqual([200, { data: null }]);
  expect((await plane.call('GET', `${path()}?all=true`, { token })).body.data).toEqual([]);
  expect((await plane.call('DELETE', `${path()}/${shown.id}`, { token })).status).toBe(404);
});

test('a key that has expired is listed with the others only where all are asked for', async () => {
  const own = await startPlane();
  const as = await own.signIn('member');
  const keys = `/api/networks/${await makeNetwork(own, as)}/enrollment-keys`;
  for (const hours of [1, 168]) {
    await own.call('POST', keys, { token: as, body: { name: `${hours} h`, expires_in_hours: hours } });
  }
  own.clock.advance(2 * hour);
  const list = async (query: string) =>
    (await own.call('GET', `${keys}${query}`, { token: as })).body.data.map(({ name }: { name: string }) => name);
  expect([await list(''), await list('?all=false'), await list('?all=true')]).toEqual([
    ['168 h'],
    ['168 h'],
    ['1 h', '168 h'],
  ]);
  expect((await own.call('GET', `${keys}?all=yes`, { token: as })).status).toBe(422);
});

test('uses and lifetime go to their limits', async () => {
  network = await makeNetwork(plane, token);
  const { body } = await create({ name: 'k', max_uses: 10, expires_in_hours: 168 });
  expect(body.data).toMatchObject({ max_uses: 10, expires_at: '2030-01-08T00:00:00.000Z' });
});

test.each([
  [{}, { name: ['is required'] }],
  [{ name: 'k', max_uses: 0 }, { max_uses: ['must be at least 1'] }],
  [{ name: 'k', max_uses: 11 }, { max_uses: ['must be at most 10'] }],
  [{ name: 'k', max_uses: 1.5 }, { max_uses: ['must be an integer'] }],
  [{ name: 'k', max_uses: '1' }, { max_uses: ['must be a number'] }],
  [{ name: 'k', expires_in_hours: 0 }, { expires_in_hours: ['must be at least 1'] }],
  [{ name: 'k', expires_in_hours: 169 }, { expires_in_hours: ['must be at most 168'] }],
])('%j is a 422', async (body, errors) => {
  network = await makeNetwork(plane, token);
  const reply = await create(body);
  expect([reply.status, reply.body.errors]).toEqual([422, errors]);
});

test('keys of a network that is not there, and a key of another network, are not there', async () => {
  network = await makeNetwork(plane, token);
  const { body } = await create({ name: 'k' });
  const elsewhere = await makeNetwork(plane, token);
  const strange = `/api/networks/${elsewhere}/enrollment-keys/${body.data.id}`;
  expect((await plane.call('DELETE', strange, { token })).status).toBe(404);
  expect((await enroll(plane, body.data.enrollment_token)).status).toBe(201);
  network = 99999;
  expect((await create({ name: 'k' })).status).toBe(404);
  expect((await plane.call('GET', path(), { token })).status).toBe(404);
});
