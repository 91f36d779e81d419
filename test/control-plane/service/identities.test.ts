import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeIdentity, proveKey } from '../../../src/core/crypto/identity.ts';
import { type KeyPair, makeKeyPair } from '../../../src/core/crypto/keys.ts';
import { closePlane, makeKey, makeNetwork, openPlane, type Plane } from '../harness.ts';

const identity = makeIdentity(new Uint8Array(32).fill(7));
const tag = '0123456789abcdef';
const at = (ms: number) => new Date(ms);

let plane: Plane;
let owner: string;
let network: number;
let path: string;
let token: string;
let seed = 0;

beforeAll(async () => {
  plane = await openPlane();
  owner = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, owner);
  const { body } = await join({ 'peer-identity-key': identity.key, 'network-secret-tag': tag });
  path = `/api/networks/${network}/peers/${body.data.peer.id}`;
  token = body.data.access_token;
});

const pair = (): KeyPair => makeKeyPair(new Uint8Array(32).fill(++seed));
async function join(headers: Record<string, string>) {
  const key = await makeKey(plane, owner, network);
  return plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name: 'edge', public_key: pair().publicKey },
    headers,
  });
}
const change = (body: object, by = token) => plane.call('PATCH', path, { token: by, body });
const shown = async () => {
  const { body } = await plane.call('GET', `/api/networks/${network}`, { token: owner });
  return body.data.peers[0];
};

describe('a host that enrols with an identity', () => {
  test('is listed with it, and with the tag of its network secret', async () => {
    expect(await shown()).toMatchObject({ identity_key: identity.key, network_secret_tag: tag });
    expect(await shown()).not.toHaveProperty('key_proof');
  });

  test.each([
    ['peer-identity-key', 'no key'],
    ['network-secret-tag', '0123'],
  ])('is refused for a bad %s', async (header, value) => {
    const { status, body } = await join({ [header]: value });
    expect([status, JSON.stringify(body)]).toEqual([422, expect.stringContaining(header)]);
  });

  test('gets another key by its own proof, which is listed with it', async () => {
    const { publicKey } = pair();
    const key_proof = proveKey(identity, publicKey, at(1000));
    expect((await change({ public_key: publicKey, key_proof })).status).toBe(200);
    expect(await shown()).toMatchObject({ public_key: publicKey, key_proof });
    const audit = await plane.call('GET', '/api/audit?limit=1', { token: owner });
    expect(audit.body.data[0].details).toEqual({ network, public_key: publicKey, key_proof });
    expect((await change({ public_key: publicKey, key_proof })).status).toBe(200);
  });

  test('loses the proof with a key that has none', async () => {
    const { publicKey } = pair();
    await change({ public_key: publicKey, key_proof: proveKey(identity, publicKey, at(1000)) });
    await change({ name: 'other' });
    expect(await shown()).toHaveProperty('key_proof');
    expect((await change({ public_key: pair().publicKey }, owner)).status).toBe(200);
    expect(await shown()).not.toHaveProperty('key_proof');
  });

  test('is refused a proof for another key, by another identity, or older than the last', async () => {
    const { publicKey } = pair();
    const proofs = [
      proveKey(identity, pair().publicKey, at(1000)),
      proveKey(makeIdentity(new Uint8Array(32).fill(9)), publicKey, at(1000)),
    ];
    for (const key_proof of proofs) expect((await change({ public_key: publicKey, key_proof })).status).toBe(422);
    await change({ public_key: publicKey, key_proof: proveKey(identity, publicKey, at(1000)) });
    const later = pair().publicKey;
    const replayed = await change({ public_key: later, key_proof: proveKey(identity, later, at(999)) });
    expect([replayed.status, replayed.body.errors]).toEqual([422, { key_proof: [expect.stringContaining('1000')] }]);
    expect(await shown()).toMatchObject({ public_key: publicKey });
  });

  test('changes the tag, and takes it away', async () => {
    await change({ network_secret_tag: 'f'.repeat(16) });
    expect(await shown()).toMatchObject({ network_secret_tag: 'f'.repeat(16) });
    await change({ network_secret_tag: null });
    expect(await shown()).not.toHaveProperty('network_secret_tag');
  });
});

test('a host that enrolled without an identity can prove nothing', async () => {
  const { body } = await join({});
  const { publicKey } = pair();
  const reply = await plane.call('PATCH', `/api/networks/${network}/peers/${body.data.peer.id}`, {
    token: body.data.access_token,
    body: { public_key: publicKey, key_proof: proveKey(identity, publicKey, at(1000)) },
  });
  expect([reply.status, reply.body.errors]).toEqual([422, { key_proof: [expect.stringContaining('without')] }]);
});
