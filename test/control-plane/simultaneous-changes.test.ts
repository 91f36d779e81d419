import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readNetwork } from '../../src/control-plane/store/networks.ts';
import { listPeers } from '../../src/control-plane/store/peers/peer-lists.ts';
import { readSnapshot } from '../../src/control-plane/store/transact.ts';
import { makeIdentity, proveEnrollment, proveKeyAt } from '../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { parsePrefix } from '../../src/core/net/cidr.ts';
import { postgres, withDatabase } from './databases.ts';
import {
  closePlane,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  publicKey,
  type Reply,
  slowPasswords,
} from './harness.ts';

/** What comes in through one control plane and another on the same database; a folder has but one. */
let planes: Plane[];
let token: string;
beforeAll(async () => {
  // Enrolments from one address come one after another, so each comes from an address of its own.
  const options = { proxies: [parsePrefix('127.0.0.0/8')], passwordCost: slowPasswords };
  const first = await openPlane(options);
  const { dataDir } = first;
  planes = postgres === null ? [first] : [first, await openPlane({ ...options, dataDir })];
  token = await first.signIn('owner');
});
afterAll(async () => {
  for (const each of planes.toReversed()) await closePlane(each);
});

const plane = (index = 0): Plane => planes[index % planes.length] as Plane;
/** Enrols a host through one of the control planes, from an address of its own. */
const enroll = (index: number, key: string, fields: object = {}, idempotencyKey?: string) =>
  plane(index).call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name: 'edge', public_key: publicKey(), ...fields },
    headers: {
      'x-forwarded-for': `10.0.0.${index + 1}`,
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
  });
const many = <Result>(times: number, work: (index: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: times }, (_, index) => work(index)));
const statuses = (replies: Reply[]) => [...new Set(replies.map(({ status }) => status))].toSorted();
const read = async (network: number) => (await plane().call('GET', `/api/networks/${network}`, { token })).body.data;
const audited = async (action: string) => {
  const { body } = await plane().call('GET', '/api/audit?limit=200', { token });
  return body.data.filter((entry: { action: string }) => entry.action === action);
};

describe('at the same moment', () => {
  test.each([1, 10])('64 hosts on a key for %i: so many are let in, each with an address of its own', async (uses) => {
    const network = await makeNetwork(plane(), token);
    const key = await makeKey(plane(), token, network, { max_uses: uses });
    const replies = await many(64, (index) => enroll(index, key));
    expect(replies.filter(({ status }) => status === 201).length).toBe(uses);
    expect(statuses(replies)).toEqual([201, 403]);
    const { peers, revision } = await read(network);
    expect([peers.length, revision]).toEqual([uses, uses + 1]);
    expect(new Set(peers.map(({ address }: { address: string }) => address)).size).toBe(uses);
  });

  test('64 enrolments with one idempotency key make one peer, take one use, and get one token', async () => {
    const network = await makeNetwork(plane(), token);
    const key = await makeKey(plane(), token, network, { max_uses: 1 });
    const fields = { public_key: publicKey() };
    const replies = await many(64, (index) => enroll(index, key, fields, 'attempt-1'));
    expect(statuses(replies)).toEqual([201]);
    expect(new Set(replies.map(({ body }) => `${body.data.peer.id} ${body.data.access_token}`)).size).toBe(1);
    for (const { body } of replies) expect(body.data.network.peers.length).toBe(body.data.network.revision - 1);
  });

  test('64 enrolments of one public key with as many idempotency keys make one peer, and take one use', async () => {
    const network = await makeNetwork(plane(), token);
    const key = await makeKey(plane(), token, network, { max_uses: 10 });
    const fields = { public_key: publicKey() };
    const replies = await many(64, (index) => enroll(index, key, fields, `attempt-${index}`));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([201, ...Array(63).fill(422)]);
    const keys = await plane().call('GET', `/api/networks/${network}/enrollment-keys?all=true`, { token });
    expect(keys.body.data[0].uses).toBe(1);
  });

  test('32 enrolments of one proven identity with as many public keys make one peer', async () => {
    const network = await makeNetwork(plane(), token);
    const keys = await many(4, () => makeKey(plane(), token, network));
    const identity = makeIdentity(randomBytes(32));
    const replies = await many(32, (index) => {
      const enrollment_token = keys[index % 4] as string;
      const public_key = parsePublicKey(publicKey());
      const tokenHash = createHash('sha256').update(enrollment_token).digest('hex');
      const { serial, signature } = proveKeyAt(identity, public_key, index + 1);
      const headers = {
        'x-forwarded-for': `10.0.0.${index + 1}`,
        'peer-identity-key': identity.key,
        'peer-identity-proof': proveEnrollment(identity, { publicKey: public_key, tokenHash }),
        'peer-key-proof': `${serial} ${signature}`,
      };
      const body = { enrollment_token, name: 'edge', public_key };
      return plane(index).call('POST', '/api/networks/enroll', { body, headers });
    });
    const enrolled = replies.filter(({ status }) => status === 201);
    const { peers, revision } = await read(network);
    expect([peers.length, revision]).toEqual([1, 1 + enrolled.length]);
    expect(new Set(enrolled.map(({ body }) => body.data.peer.id)).size).toBe(1);
    // A proof that is older than the one listed is refused.
    expect([201, 422]).toEqual(expect.arrayContaining(statuses(replies)));
    const latest = enrolled.find(({ body }) => body.data.peer.public_key === peers[0].public_key);
    const own = { token: latest?.body.data.access_token };
    expect((await plane().call('GET', `/api/networks/${network}`, own)).body.data.peers).toEqual(peers);
  });

  test('64 changes: as many revisions', async () => {
    const network = await makeNetwork(plane(), token);
    const { peer } = (await enroll(0, await makeKey(plane(), token, network))).body.data;
    const path = `/api/networks/${network}/peers/${peer.id}`;
    const change = (index: number) => ({ token, body: { endpoint: `203.0.113.1:${index + 1}` } });
    await many(64, (index) => plane(index).call('PATCH', path, change(index)));
    expect((await read(network)).revision).toBe(2 + 64);
  });

  test('changes of different fields: each of them stays', async () => {
    const network = await makeNetwork(plane(), token);
    const key = await makeKey(plane(), token, network);
    const { peer } = (await enroll(0, key, { peer_type: 'connector' })).body.data;
    const peerPath = `/api/networks/${network}/peers/${peer.id}`;
    for (let round = 0; round < 10; round += 1) {
      const fields = { name: `n${round}`, description: `d${round}`, routes: [`192.168.${round}.0/24`] };
      await many(3, (index) =>
        plane(index).call('PATCH', `/api/networks/${network}`, {
          token,
          body: Object.fromEntries(Object.entries(fields).slice(index, index + 1)),
        }),
      );
      const peerFields = { name: `p${round}`, endpoint: `203.0.113.1:${round + 1}`, withdrawn: fields.routes };
      const replies = await many(3, (index) =>
        plane(index).call('PATCH', peerPath, {
          token,
          body: Object.fromEntries(Object.entries(peerFields).slice(index, index + 1)),
        }),
      );
      expect(statuses(replies)).toEqual([200]);
      const after = await read(network);
      expect(after).toMatchObject({ ...fields, revision: 2 + (round + 1) * 6 });
      expect(after.peers[0]).toMatchObject(peerFields);
    }
  });

  test('the same change 32 times: one revision, and one line in the audit', async () => {
    const network = await makeNetwork(plane(), token);
    const body = { name: `once-${network}` };
    const replies = await many(32, (index) => plane(index).call('PATCH', `/api/networks/${network}`, { token, body }));
    expect(statuses(replies)).toEqual([200]);
    expect((await read(network)).revision).toBe(2);
    const lines = (await audited('network.update')).filter(
      ({ target }: { target: { id: number } }) => target.id === network,
    );
    expect(lines.length).toBe(1);
  });

  test('a network is deleted while hosts enrol, change, leave, and keys are made: all or nothing, and never an error of ours', async () => {
    for (let round = 0; round < 8; round += 1) {
      const network = await makeNetwork(plane(), token);
      const path = `/api/networks/${network}`;
      const key = await makeKey(plane(), token, network, { max_uses: 10 });
      const { peer } = (await enroll(0, key)).body.data;
      const peerPath = `${path}/peers/${peer.id}`;
      const work: ((on: Plane, index: number) => Promise<Reply>)[] = [
        (_on, index) => enroll(index, key),
        (on) => on.call('PATCH', peerPath, { token, body: { name: `n${round}` } }),
        (on) => on.call('POST', `${path}/enrollment-keys`, { token, body: { name: 'late' } }),
        (on) => on.call('GET', path, { token }),
        (on) => on.call('DELETE', peerPath, { token }),
        (_on, index) => enroll(index, key, {}, 'attempt'),
      ];
      const asked = many(18, (index) => (work[index % work.length] as (typeof work)[number])(plane(index), index));
      const deleted = many(2, (index) => plane(index).call('DELETE', path, { token }));
      expect((await deleted).map(({ status }) => status).toSorted()).toEqual([200, 404]);
      expect(statuses(await asked).filter((status) => ![200, 201, 401, 404].includes(status))).toEqual([]);
      await withDatabase(plane().dataDir, async (db) => {
        for (const table of ['peers', 'enrollment_keys', 'returned_addresses', 'changes'] as const) {
          const left = await db.selectFrom(table).select('network_id').where('network_id', '=', network).execute();
          expect([table, left]).toEqual([table, []]);
        }
      });
    }
  });

  test('a user is removed while they log in and make tokens: none of what they got opens anything', async () => {
    for (let round = 0; round < 4; round += 1) {
      const login = { email: `leaver-${round}@example.net`, password: owner.password };
      const made = await plane().call('POST', '/api/users', { token, body: { ...login, role: 'admin' } });
      const before = (await plane().call('POST', '/api/auth/login', { body: login })).body.data.access_token;
      const attempts = many(8, (index) =>
        index % 2
          ? plane(index).call('POST', '/api/auth/login', { body: login })
          : plane(index).call('POST', '/api/auth/tokens', { token: before, body: { name: `t${index}` } }),
      );
      const removed = await plane(round).call('DELETE', `/api/users/${made.body.data.id}`, { token });
      expect(removed.status).toBe(200);
      const replies = await attempts;
      expect(statuses(replies).filter((status) => ![200, 201, 401].includes(status))).toEqual([]);
      for (const { body } of replies) {
        const got = body.data?.access_token ?? 'cpu_none';
        expect((await plane().call('GET', '/api/auth/me', { token: got })).status).toBe(401);
      }
    }
  });

  test('two owners remove each other: one stays', async () => {
    const organization = await plane().addOrganization('two owners');
    const sessions = await many(2, () => plane().signIn('owner', organization));
    const ids = await many(2, async (index) => {
      const me = await plane().call('GET', '/api/auth/me', { token: sessions[index] });
      return me.body.data.id as number;
    });
    const replies = await many(2, (index) =>
      plane(index).call('DELETE', `/api/users/${ids[1 - index]}`, { token: sessions[index] }),
    );
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 401]);
  });

  test('16 users with one e-mail address make one user', async () => {
    const body = { email: 'twin@example.net', password: owner.password, role: 'viewer' };
    const replies = await many(16, (index) => plane(index).call('POST', '/api/users', { token, body }));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([201, ...Array(15).fill(422)]);
  });

  test('keys are revoked: after the reply no host can enrol with the key', async () => {
    for (let round = 0; round < 8; round += 1) {
      const network = await makeNetwork(plane(), token);
      const key = await makeKey(plane(), token, network, { max_uses: 10 });
      const path = `/api/networks/${network}/enrollment-keys`;
      const [{ id }] = (await plane().call('GET', path, { token })).body.data;
      const asked = many(10, (index) => enroll(index, key));
      await plane(round).call('DELETE', `${path}/${id}`, { token });
      expect((await enroll(round + 1, key)).status).toBe(403);
      const replies = await asked;
      expect(statuses(replies).filter((status) => status !== 201 && status !== 403)).toEqual([]);
      expect((await read(network)).peers.length).toBe(replies.filter(({ status }) => status === 201).length);
    }
  });
});

test('what is read together is of one moment, whatever is committed in between', async () => {
  const network = await makeNetwork(plane(), token);
  const key = await makeKey(plane(), token, network);
  await withDatabase(plane().dataDir, (db) =>
    readSnapshot(db, async (snapshot) => {
      const { revision } = await readNetwork(snapshot, network);
      expect((await enroll(0, key)).status).toBe(201);
      expect([revision, await listPeers(snapshot, network)]).toEqual([1, []]);
    }),
  );
  expect(await read(network)).toMatchObject({ revision: 2, peers: [{ name: 'edge' }] });
});
