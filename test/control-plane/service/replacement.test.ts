import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Identity, makeIdentity, proveEnrollment, proveKey } from '../../../src/core/crypto/identity.ts';
import { digestPeer, type PublicKey, parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { closePlane, makeKey, makeNetwork, openPlane, type Plane, publicKey } from '../harness.ts';

let plane: Plane;
let owner: string;
let network: number;
let seed = 0;

beforeAll(async () => {
  plane = await openPlane();
  owner = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, owner, { routes: ['10.1.0.0/16', '10.2.0.0/16', '10.3.0.0/16'] });
});

interface Enrolment {
  readonly key: string;
  readonly fields?: object;
  readonly headers?: Record<string, string>;
  /** Of the proof of the key; none without it. */
  readonly serial?: number;
  readonly public_key?: PublicKey;
}

const newIdentity = () => makeIdentity(new Uint8Array(32).fill(++seed));
const newKey = () => parsePublicKey(publicKey());
const hash = (key: string) => createHash('sha256').update(key).digest('hex');
const proofOf = (identity: Identity, key: string, of: PublicKey) =>
  proveEnrollment(identity, { publicKey: of, tokenHash: hash(key) });

/** Enrols with the proof of an identity. */
function enrol(identity: Identity, { key, fields = {}, headers = {}, serial, public_key = newKey() }: Enrolment) {
  const keyProof = serial === undefined ? null : proveKey(identity, public_key, new Date(serial));
  return plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name: 'edge', public_key, ...fields },
    headers: {
      'peer-identity-key': identity.key,
      'peer-identity-proof': proofOf(identity, key, public_key),
      ...(keyProof && { 'peer-key-proof': `${keyProof.serial} ${keyProof.signature}` }),
      ...headers,
    },
  });
}

const path = () => `/api/networks/${network}`;
const read = async (token = owner) => (await plane.call('GET', path(), { token })).body.data;
const uses = async () => {
  const { body } = await plane.call('GET', `${path()}/enrollment-keys?all=true`, { token: owner });
  return body.data.map((key: { uses: number }) => key.uses);
};
const brokenBy = async (reply: ReturnType<typeof enrol>) => {
  const { status, body } = await reply;
  return [status, Object.keys(body.errors ?? {})];
};

describe('a proven identity that a peer has', () => {
  test('brings no suspended peer back, and extends no end; a peer without one gets the end of the key', async () => {
    const identity = newIdentity();
    const key = await makeKey(plane, owner, network);
    const { id } = (await enrol(identity, { key, serial: 1 })).body.data.peer;
    const change = (body: object) => plane.call('PATCH', `${path()}/peers/${id}`, { token: owner, body });
    const hours = (count: number) => new Date(plane.clock.now().getTime() + count * 3_600_000).toISOString();
    await change({ suspended: true, expires_at: hours(2) });
    const refused = await enrol(identity, { key, serial: 2 });
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('this peer is suspended')]);
    expect(await uses()).toEqual([1]);
    await change({ suspended: false });
    expect((await enrol(identity, { key, serial: 3 })).body.data.peer).toMatchObject({ id, expires_at: hours(2) });
    const limited = await makeKey(plane, owner, network, { peer_expires_in_hours: 5 });
    const renewed = await enrol(identity, { key: limited, serial: 4 });
    expect(renewed.body.data.peer).toMatchObject({ id, expires_at: hours(2) });
    await change({ expires_at: null });
    const ending = await enrol(identity, { key: limited, serial: 5 });
    expect(ending.body.data.peer).toMatchObject({ id, expires_at: hours(5) });
  });

  test('replaces the peer: same id, name, address, routes and priority, new key and token, for one use', async () => {
    const identity = newIdentity();
    const key = await makeKey(plane, owner, network);
    const connector = { peer_type: 'connector', endpoint: '203.0.113.1:51820' };
    const { data: first } = (await enrol(identity, { key, fields: connector })).body;
    const given = { name: 'gate', priority: 5, routes: ['10.1.0.0/16', '10.2.0.0/16'] };
    await plane.call('PATCH', `${path()}/peers/${first.peer.id}`, { token: owner, body: given });
    const before = (await read()).peers[0];
    plane.clock.advance(1000);

    const public_key = newKey();
    const { status, body } = await enrol(identity, {
      key,
      fields: { peer_type: 'connector' },
      serial: 5000,
      public_key,
    });
    expect(status).toBe(201);
    const replaced = {
      ...{ ...before, public_key, endpoint: null, serving_since: plane.clock.now().toISOString() },
      key_proof: proveKey(identity, public_key, new Date(5000)),
    };
    expect(body.data.peer).toEqual(replaced);
    expect((await read(body.data.access_token)).peers).toEqual([replaced]);
    expect(await uses()).toEqual([2]);
    for (const [method, at] of [
      ['GET', path()],
      ['DELETE', `${path()}/peers/${first.peer.id}`],
    ] as const) {
      expect((await plane.call(method, at, { token: first.access_token })).status).toBe(401);
    }
    const { body: audit } = await plane.call('GET', '/api/audit?limit=1', { token: owner });
    expect(audit.data[0]).toMatchObject({
      ...{ action: 'peer.replace', actor: { kind: 'enrollment_key' }, target: { id: first.peer.id, name: 'gate' } },
      details: { public_key, name_asked: 'edge' },
    });
  });

  test.each(['current-networks', 'current-peers'] as const)(
    'wins over %s, and a repetition of it is none',
    async (header) => {
      const identity = newIdentity();
      const key = await makeKey(plane, owner, network);
      const { data: first } = (await enrol(identity, { key })).body;
      const { public_key: publicKey, address } = first.peer;
      const known = { 'current-networks': `${network}`, 'current-peers': digestPeer({ publicKey, address }) };
      const again = {
        ...{ key, serial: 1000, public_key: newKey() },
        headers: { [header]: known[header], 'idempotency-key': 'a' },
      };
      const replies = [await enrol(identity, again), await enrol(identity, again)];
      expect(replies.map(({ status, body }) => [status, body.data.peer.id])).toEqual(
        Array(2).fill([201, first.peer.id]),
      );
      expect(new Set(replies.map(({ body }) => body.data.access_token)).size).toBe(1);
      expect(await uses()).toEqual([2]);
    },
  );

  test('gives the peer the tags of the key, and keeps those that it has if the key names none', async () => {
    const identity = newIdentity();
    const tagsAfter = async (fields: object, serial: number) => {
      const key = await makeKey(plane, owner, network, fields);
      return (await enrol(identity, { key, serial })).body.data.peer.tags;
    };
    expect(await tagsAfter({ tags: ['web'] }, 1000)).toEqual(['web']);
    expect(await tagsAfter({}, 2000)).toEqual(['web']);
    const [{ id }] = (await read()).peers;
    await plane.call('PATCH', `${path()}/peers/${id}`, { token: owner, body: { tags: ['db'] } });
    expect(await tagsAfter({}, 3000)).toEqual(['db']);
    expect(await tagsAfter({ tags: ['edge', 'ops'] }, 4000)).toEqual(['edge', 'ops']);
  });

  test('voids the earlier enrolment: sent again, it gives no token and takes nothing back', async () => {
    const identity = newIdentity();
    const key = await makeKey(plane, owner, network);
    const first = { key, headers: { 'idempotency-key': 'first' }, public_key: newKey() };
    await enrol(identity, first);
    const { data } = (await enrol(identity, { key, serial: 1000 })).body;
    expect(await brokenBy(enrol(identity, first))).toEqual([422, ['peer-key-proof']]);
    expect(await brokenBy(enrol(identity, { key, serial: 1000 }))).toEqual([422, ['peer-key-proof']]);
    expect((await read(data.access_token)).peers).toEqual([data.peer]);
    expect(await uses()).toEqual([2]);
  });

  test('gets no more than the key allows', async () => {
    const identity = newIdentity();
    const any = await makeKey(plane, owner, network);
    const fields = { peer_type: 'connector' };
    const { data: first } = (await enrol(identity, { key: any, fields })).body;
    const serve = (routes: string[]) =>
      plane.call('PATCH', `${path()}/peers/${first.peer.id}`, { token: owner, body: { routes, priority: 3 } });
    await serve(['10.1.0.0/16', '10.2.0.0/16']);
    const limits = { peer_types: ['connector'], routes: ['10.2.0.0/16', '10.3.0.0/16'] };
    const limited = await makeKey(plane, owner, network, limits);
    expect((await enrol(identity, { key: limited, serial: 1000 })).status).toBe(403);
    const { data } = (await enrol(identity, { key: limited, fields, serial: 1000 })).body;
    expect(data.peer).toMatchObject({ id: first.peer.id, routes: ['10.2.0.0/16'] });
    const { data: other } = (await enrol(identity, { key: any, serial: 2000 })).body;
    expect(other.peer).toMatchObject({ id: first.peer.id, peer_type: 'origin' });
    expect([other.peer.routes, other.peer.priority]).toEqual([undefined, undefined]);
  });

  test('is back in service, with the routes of the key where it had no others', async () => {
    const identity = newIdentity();
    const fields = { peer_type: 'connector' };
    const any = await makeKey(plane, owner, network);
    const { id } = (await enrol(identity, { key: any, fields })).body.data.peer;
    const body = { withdrawn: ['10.1.0.0/16', '10.77.0.0/24'] };
    await plane.call('PATCH', `${path()}/peers/${id}`, { token: owner, body });
    const { peer: back } = (await enrol(identity, { key: any, fields, serial: 1000 })).body.data;
    expect([back.id, back.withdrawn, back.routes]).toEqual([id, undefined, undefined]);
    const routes = ['10.2.0.0/16'];
    const limited = await makeKey(plane, owner, network, { peer_types: ['connector'], routes });
    expect((await enrol(identity, { key: limited, fields, serial: 2000 })).body.data.peer).toMatchObject({
      id,
      routes,
    });
  });

  test('keeps the routes that an admin gave it while it is of another type, and shows none then', async () => {
    const identity = newIdentity();
    const key = await makeKey(plane, owner, network);
    const connector = { peer_type: 'connector' };
    const { id } = (await enrol(identity, { key, fields: connector })).body.data.peer;
    const routes = ['10.1.0.0/16', '10.2.0.0/16'];
    await plane.call('PATCH', `${path()}/peers/${id}`, { token: owner, body: { routes } });
    const { peer: origin } = (await enrol(identity, { key, serial: 1000 })).body.data;
    expect([origin.id, origin.routes]).toEqual([id, undefined]);
    expect((await read()).peers).toEqual([origin]);
    const { peer: again } = (await enrol(identity, { key, fields: connector, serial: 2000 })).body.data;
    expect(again).toMatchObject({ id, routes });
  });

  test('of another network replaces nothing here', async () => {
    const identity = newIdentity();
    const { data: first } = (await enrol(identity, { key: await makeKey(plane, owner, network) })).body;
    const elsewhere = await makeNetwork(plane, owner);
    const { data } = (await enrol(identity, { key: await makeKey(plane, owner, elsewhere), serial: 1000 })).body;
    expect([data.network.id, data.peer.id === first.peer.id]).toEqual([elsewhere, false]);
    expect((await read()).peers).toEqual([first.peer]);
  });
});

describe('an identity that is not proven', () => {
  const claim = async (identity: Identity, headers: Record<string, string> = {}) =>
    plane.call('POST', '/api/networks/enroll', {
      body: { enrollment_token: await makeKey(plane, owner, network), name: 'thief', public_key: publicKey() },
      headers: { 'peer-identity-key': identity.key, ...headers },
    });

  test('is kept where no peer has it or had it, and replaces nothing', async () => {
    const identity = newIdentity();
    const { peer } = (await claim(identity)).body.data;
    expect(peer.identity_key).toBe(identity.key);
    const { peer: thief } = (await claim(identity)).body.data;
    expect([thief.id === peer.id, thief.identity_key]).toEqual([false, undefined]);
    await plane.call('DELETE', `${path()}/peers/${peer.id}`, { token: owner });
    expect((await claim(identity)).body.data.peer.identity_key).toBeUndefined();
    const { data } = (await enrol(identity, { key: await makeKey(plane, owner, network), serial: 1000 })).body;
    expect(data.peer).toMatchObject({ identity_key: identity.key, key_proof: { serial: 1000 } });
  });

  test('is refused where its key is none, with a proof or without, and no use of the enrolment key is taken', async () => {
    const identity = newIdentity();
    // The last letter has two bits that no byte uses: "B" stands for the same bytes as "A", and is another text.
    const key = `${identity.key.slice(0, 42)}B=` as Identity['key'];
    expect(await brokenBy(claim({ ...identity, key }))).toEqual([422, ['peer-identity-key']]);
    const enrolment = enrol({ ...identity, key }, { key: await makeKey(plane, owner, network) });
    expect(await brokenBy(enrolment)).toEqual([422, ['peer-identity-key']]);
    expect((await read()).peers).toEqual([]);
    expect((await uses()).every((used: number) => used === 0)).toBe(true);
  });

  test('is refused with a proof that was seen elsewhere, and no use of the key is taken', async () => {
    const identity = newIdentity();
    const key = await makeKey(plane, owner, network);
    const public_key = newKey();
    const { data } = (await enrol(identity, { key, public_key })).body;
    const seen = { 'peer-identity-proof': proofOf(identity, key, public_key) };
    const other = await makeKey(plane, owner, network);
    const signed = { 'peer-identity-proof': proofOf(newIdentity(), key, public_key) };
    const keySeen = proveKey(identity, newKey(), new Date(9000));
    for (const [field, reply] of [
      ['peer-identity-proof', enrol(identity, { key, headers: seen })],
      ['peer-identity-proof', enrol(identity, { key: other, public_key, headers: seen })],
      ['peer-identity-proof', enrol(identity, { key, public_key, headers: signed })],
      ['peer-identity-proof', claim(identity, { 'peer-identity-proof': 'x' })],
      ['peer-key-proof', claim(identity, { 'peer-key-proof': `9000 ${keySeen.signature}` })],
      ['peer-key-proof', enrol(identity, { key, headers: { 'peer-key-proof': `9000 ${keySeen.signature}` } })],
    ] as const) {
      expect(await brokenBy(reply)).toEqual([422, [field]]);
    }
    expect((await read(data.access_token)).peers).toEqual([data.peer]);
    expect((await uses()).reduce((sum: number, used: number) => sum + used)).toBe(1);
  });
});
