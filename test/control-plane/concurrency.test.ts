import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane, publicKey, type Reply } from './harness.ts';

let plane: Plane;
let token: string;
let network: number;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const at64 = (work: (index: number) => Promise<Reply>) =>
  Promise.all(Array.from({ length: 64 }, (_, index) => work(index)));
const admitted = (replies: Reply[]) => replies.filter(({ status }) => status === 201);
const distinct = (replies: Reply[], of: (data: Reply['body']) => unknown) =>
  new Set(replies.map(({ body }) => of(body.data))).size;
const read = async () => (await plane.call('GET', `/api/networks/${network}`, { token })).body.data;

test.each([1, 10])('64 hosts at once on a key for %i', async (uses) => {
  network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network, { max_uses: uses });
  const replies = await at64(() => enroll(plane, key));
  const admittedOnes = admitted(replies);
  expect(admittedOnes.length).toBe(uses);
  expect(replies.filter(({ status }) => status === 403).length).toBe(64 - uses);
  expect(distinct(admittedOnes, ({ peer }) => peer.address)).toBe(uses);
  expect(distinct(admittedOnes, ({ access_token }) => access_token)).toBe(uses);
  const after = await read();
  expect([after.peers.length, after.revision]).toEqual([uses, uses + 1]);
});

test('one host 64 times at once with one idempotency key is one peer', async () => {
  network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network, { max_uses: 1 });
  const public_key = publicKey();
  const replies = await at64(() => enroll(plane, key, { public_key }, 'attempt-1'));
  expect(admitted(replies).length).toBe(64);
  expect(distinct(replies, ({ peer }) => `${peer.id} ${peer.address}`)).toBe(1);
  const tokens = [...new Set(replies.map(({ body }) => body.data.access_token))];
  for (const each of tokens) {
    expect((await plane.call('GET', `/api/networks/${network}`, { token: each })).status).toBe(200);
  }
  expect((await read()).peers.length).toBe(1);
});

test('one public key 64 times at once with as many idempotency keys is one peer, and one use', async () => {
  network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network, { max_uses: 10 });
  const public_key = publicKey();
  const replies = await at64((index) => enroll(plane, key, { public_key }, `attempt-${index}`));
  expect(admitted(replies).length).toBe(1);
  expect(replies.filter(({ status }) => status === 422).length).toBe(63);
  const keys = await plane.call('GET', `/api/networks/${network}/enrollment-keys`, { token });
  expect(keys.body.data[0].uses).toBe(1);
});

test('64 changes at once are 64 revisions', async () => {
  network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const { body } = await enroll(plane, key);
  const path = `/api/networks/${network}/peers/${body.data.peer.id}`;
  await at64((index) => plane.call('PATCH', path, { token, body: { endpoint: `203.0.113.1:${index + 1}` } }));
  expect((await read()).revision).toBe(2 + 64);
});
