import { randomBytes } from 'node:crypto';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Unauthenticated } from '../../src/control-plane/errors.ts';
import { Evaluator } from '../../src/control-plane/health/evaluate.ts';
import { observeInstances } from '../../src/control-plane/health/observe-instances.ts';
import { reviseRelay } from '../../src/control-plane/health/revise-relay.ts';
import { login } from '../../src/control-plane/service/accounts/sessions.ts';
import { expirePeers } from '../../src/control-plane/service/expiry.ts';
import { claimDeliveries } from '../../src/control-plane/store/deliveries.ts';
import { savePeerHealth } from '../../src/control-plane/store/health.ts';
import type { Tables } from '../../src/control-plane/store/tables.ts';
import { transact } from '../../src/control-plane/store/transact.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { parsePrefix } from '../../src/core/net/cidr.ts';
import { eventually } from '../lab/eventually.ts';
import { postgres } from './databases.ts';
import {
  closePlane,
  contextOver,
  hour,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  publicKey,
  quiet,
  type Reply,
  withDatabase,
} from './harness.ts';
import { controlStatements, untilStalled } from './held-statements.ts';

const statements = controlStatements();
let plane: Plane;
let token: string;
beforeAll(async () => {
  // Nothing of its own is written meanwhile.
  plane = await openPlane({ healthTimes: quiet, proxies: [parsePrefix('127.0.0.0/8')] });
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

/** Begins the second work while the first is about to commit. */
async function contend<One, Two>(first: () => Promise<One>, second: () => Promise<Two>, at = /^commit$/) {
  const held = statements.hold(at, at.source === '^commit$' ? 'before' : 'after');
  const one = first();
  await held.reached;
  const two = second();
  await untilStalled(plane.dataDir, two);
  held.release();
  return Promise.all([one, two]);
}

let addresses = 0;
/** Enrols a host from an address of its own: those from one address come one after another. */
const enroll = (key: string, fields: object = {}) =>
  plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name: 'edge', public_key: publicKey(), ...fields },
    headers: { 'x-forwarded-for': `10.0.0.${++addresses}` },
  });

const call = (method: string, path: string, body?: object, bearer = token) =>
  plane.call(method, path, { token: bearer, ...(body && { body }) });
const statusesOf = (replies: readonly Reply[]) => replies.map(({ status }) => status);
const count = (table: keyof Tables, network: number) =>
  withDatabase(plane.dataDir, async (db) => {
    const rows = await db
      .selectFrom(table as 'peers')
      .select('network_id')
      .where('network_id', '=', network)
      .execute();
    return rows.length;
  });

async function makePeer(fields: object = {}) {
  const network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24'] });
  const key = await makeKey(plane, token, network, fields);
  const { peer, access_token } = (await enroll(key, { peer_type: 'connector' })).body.data;
  const path = `/api/networks/${network}`;
  const id = peer.id as number;
  return { network, key, id, path, peerPath: `${path}/peers/${id}`, peerToken: access_token as string };
}

async function makeUser(role = 'admin') {
  const body = { email: `user-${randomBytes(4).toString('hex')}@example.net`, password: owner.password, role };
  const id = (await call('POST', '/api/users', body)).body.data.id as number;
  const logIn = () => plane.call('POST', '/api/auth/login', { body });
  const session = async () => (await logIn()).body.data.access_token as string;
  return { id, body, logIn, session };
}

const newPassword = { current_password: owner.password, new_password: 'another long password' };
const me = async (bearer: string) => (await call('GET', '/api/auth/me', undefined, bearer)).status;

describe('of two changes at once, the second is made by what the first left', () => {
  test('the last use of a key', async () => {
    const { network, key } = await makePeer({ max_uses: 2 });
    const replies = await contend(
      () => enroll(key),
      () => enroll(key),
    );
    expect([statusesOf(replies), await count('peers', network)]).toEqual([[201, 403], 2]);
  });

  test('two enrolments get different addresses', async () => {
    const { key } = await makePeer();
    const replies = await contend(
      () => enroll(key, { name: 'one' }),
      () => enroll(key, { name: 'two' }),
    );
    expect(statusesOf(replies)).toEqual([201, 201]);
    expect(replies.map(({ body }) => [body.data.peer.address, body.data.network.peers.length])).toEqual([
      ['10.77.0.2', expect.any(Number)],
      ['10.77.0.3', 3],
    ]);
  });

  test('a key that is revoked lets no host in', async () => {
    const { network, key, path } = await makePeer();
    const [{ id }] = (await call('GET', `${path}/enrollment-keys`)).body.data;
    const replies = await contend(
      () => call('DELETE', `${path}/enrollment-keys/${id}`),
      () => enroll(key),
    );
    expect([statusesOf(replies), await count('peers', network)]).toEqual([[200, 403], 1]);
  });

  test('two fields of a peer both stay', async () => {
    const { peerPath } = await makePeer();
    const replies = await contend(
      () => call('PATCH', peerPath, { name: 'moved' }),
      () => call('PATCH', peerPath, { endpoint: '203.0.113.1:51820' }),
    );
    expect(statusesOf(replies)).toEqual([200, 200]);
    expect(replies[1].body.data).toMatchObject({ name: 'moved', endpoint: '203.0.113.1:51820' });
  });

  test('two routes that are added both stay', async () => {
    const { path } = await makePeer();
    const [, second] = await contend(
      () => call('PATCH', path, { add_routes: ['192.168.2.0/24'] }),
      () => call('PATCH', path, { add_routes: ['192.168.3.0/24'] }),
    );
    expect(second.body.data.routes).toEqual(['192.168.1.0/24', '192.168.2.0/24', '192.168.3.0/24']);
  });

  test('two reports of a host are merged', async () => {
    const { peerPath, peerToken, path, id } = await makePeer();
    await contend(
      () => call('POST', `${peerPath}/report`, { drift: 3 }, peerToken),
      () => call('POST', `${peerPath}/report`, { problem: 'nft failed' }, peerToken),
    );
    const { peers } = (await call('GET', `${path}/health`)).body.data;
    expect(peers.find((peer: { id: number }) => peer.id === id)).toMatchObject({ drift: 3, problem: 'nft failed' });
  });

  test.each([
    ['suspended', 'PATCH', { suspended: true }, 403],
    ['removed', 'DELETE', undefined, 401],
  ] as const)('a host that is %s does not change itself', async (_what, method, body, status) => {
    const { peerPath, peerToken } = await makePeer();
    const replies = await contend(
      () => call(method, peerPath, body),
      () => call('PATCH', peerPath, { name: 'mine' }, peerToken),
    );
    expect(statusesOf(replies)).toEqual([200, status]);
  });

  test('a network that is deleted takes in no host, and gets no key', async () => {
    for (const second of ['enroll', 'key'] as const) {
      const { network, key, path } = await makePeer();
      const replies = await contend(
        () => call('DELETE', path),
        () => (second === 'key' ? call('POST', `${path}/enrollment-keys`, { name: 'late' }) : enroll(key)),
      );
      expect(statusesOf(replies)).toEqual([200, second === 'key' ? 404 : 401]);
      expect([await count('peers', network), await count('enrollment_keys', network)]).toEqual([0, 0]);
    }
  });

  test('a host that enrols before its network is deleted receives the statement of it', async () => {
    const { network, key, path } = await makePeer();
    const replies = await contend(
      () => enroll(key),
      () => call('DELETE', path),
    );
    expect([statusesOf(replies), await count('deleted_peers', network)]).toEqual([[201, 200], 2]);
  });

  test('a key is limited to routes that the network has then', async () => {
    const { path } = await makePeer();
    const replies = await contend(
      () => call('PATCH', path, { routes: [] }),
      () => call('POST', `${path}/enrollment-keys`, { name: 'late', routes: ['192.168.1.0/24'] }),
    );
    expect(statusesOf(replies)).toEqual([200, 422]);
  });

  test('the last place among the tokens of a user', async () => {
    const { id, session } = await makeUser();
    const bearer = await session();
    await withDatabase(plane.dataDir, async (db) => {
      const common = { user_id: id, created_at: '2030-01-01T00:00:00.000Z', expires_at: null, last_used_at: null };
      const made = Array.from({ length: 99 }, (_, index) => ({ name: `t${index}`, token_hash: `${id} ${index}` }));
      await db
        .insertInto('personal_tokens')
        .values(made.map((each) => ({ ...common, ...each })))
        .execute();
    });
    const make = () => call('POST', '/api/auth/tokens', { name: 'last' }, bearer);
    expect(statusesOf(await contend(make, make))).toEqual([201, 422]);
  });

  test.each(['removes', 'demotes'] as const)(
    'an owner who %s another does not lose to the same of that',
    async (what) => {
      const organization = await plane.addOrganization(what);
      const sessions = [await plane.signIn('owner', organization), await plane.signIn('owner', organization)] as const;
      const ids = await Promise.all(
        sessions.map(async (bearer) => (await call('GET', '/api/auth/me', undefined, bearer)).body.data.id as number),
      );
      const act = (by: 0 | 1) => () =>
        what === 'removes'
          ? call('DELETE', `/api/users/${ids[1 - by]}`, undefined, sessions[by])
          : call('PATCH', `/api/users/${ids[1 - by]}`, { role: 'viewer' }, sessions[by]);
      expect(statusesOf(await contend(act(0), act(1)))).toEqual([200, what === 'removes' ? 401 : 403]);
    },
  );

  test('the last two owners do not both become viewers', async () => {
    const organization = await plane.addOrganization('two owners');
    const sessions = [await plane.signIn('owner', organization), await plane.signIn('owner', organization)] as const;
    const resign = (bearer: string) => async () => {
      const { id } = (await call('GET', '/api/auth/me', undefined, bearer)).body.data;
      return () => call('PATCH', `/api/users/${id}`, { role: 'viewer' }, bearer);
    };
    const [one, two] = [await resign(sessions[0])(), await resign(sessions[1])()];
    expect(statusesOf(await contend(one, two))).toEqual([200, 403]);
  });

  test.each([
    ['becomes a viewer', 'PATCH', { role: 'viewer' }, 403],
    ['is removed', 'DELETE', undefined, 401],
  ] as const)('a user who %s leaves no usable key behind', async (_what, method, body, status) => {
    for (const keyFirst of [false, true]) {
      const { id, session } = await makeUser();
      const bearer = await session();
      const { path } = await makePeer();
      const end = () => call(method, `/api/users/${id}`, body);
      const make = () => call('POST', `${path}/enrollment-keys`, { name: 'own' }, bearer);
      const replies = keyFirst ? await contend(make, end) : await contend(end, make);
      expect(statusesOf(replies)).toEqual(keyFirst ? [201, 200] : [200, status]);
      const keys = (await call('GET', `${path}/enrollment-keys`)).body.data;
      expect(keys.map(({ name }: { name: string }) => name)).toEqual(['rack']);
    }
  });

  test.each(['logout', 'revocation', 'revocation by an owner', 'password change'] as const)(
    'a session that ends by a %s makes no further change',
    async (what) => {
      const { id, session } = await makeUser();
      const [bearer, other] = [await session(), await session()];
      const { path } = await makePeer();
      const [ended] = (await call('GET', '/api/auth/sessions', undefined, bearer)).body.data;
      const end = () => {
        if (what === 'logout') return call('POST', '/api/auth/logout', {}, bearer);
        if (what === 'revocation') return call('DELETE', `/api/auth/sessions/${ended.id}`, undefined, other);
        if (what === 'revocation by an owner') return call('DELETE', `/api/users/${id}/sessions`);
        return call('PUT', '/api/auth/password', newPassword, other);
      };
      const replies = await contend(end, () => call('PATCH', path, { name: 'late' }, bearer));
      expect(statusesOf(replies)).toEqual([200, 401]);
    },
  );

  test('a password change ends a session and a token that are just being made', async () => {
    for (const what of ['session', 'token'] as const) {
      const { session, logIn } = await makeUser();
      const [bearer, other] = [await session(), await session()];
      const make = what === 'session' ? logIn : () => call('POST', '/api/auth/tokens', { name: 'ci' }, other);
      const [made, changed] = await contend(make, () => call('PUT', '/api/auth/password', newPassword, bearer));
      expect([what, made.status < 300, changed.status]).toEqual([what, true, 200]);
      expect(await me(made.body.data.access_token)).toBe(401);
    }
  });
});

test('a login whose password changes after it was verified is refused', () =>
  withDatabase(plane.dataDir, async (db) => {
    const { session, id, body } = await makeUser();
    const bearer = await session();
    const held = statements.hold(/"password_hash", "reset_at" from "users" where "email"/, 'after');
    const attempt = {
      email: body.email,
      password: new Secret(body.password),
      device: '',
      address: '127.0.0.1',
      isDirect: true,
    };
    const late = login({ ...contextOver(db, plane), passwordCost: { N: 16, r: 1, p: 1 } }, attempt);
    await held.reached;
    expect((await call('PUT', '/api/auth/password', newPassword, bearer)).status).toBe(200);
    held.release();
    await expect(late).rejects.toThrow(Unauthenticated);
    const left = await db.selectFrom('sessions').select('id').where('user_id', '=', id).execute();
    // That of the change itself.
    expect(left).toHaveLength(1);
  }));

describe.runIf(postgres)('locks are taken in one order, so that no transaction is done again', () => {
  /** How many transactions two works begin, of which the first is held while it has the lock that this statement takes. */
  async function countBegun<Result>(lock: RegExp, first: () => Promise<Result>, second: () => Promise<Result>) {
    let begun = 0;
    const stop = statements.observe((sql) => {
      if (sql === 'begin') begun += 1;
    });
    const results = await contend(first, second, lock);
    stop();
    return { begun, results };
  }

  test('by two owners who remove each other: first of the organization', async () => {
    const organization = await plane.addOrganization('in order');
    const sessions = [await plane.signIn('owner', organization), await plane.signIn('owner', organization)] as const;
    const ids = await Promise.all(
      sessions.map(async (bearer) => (await call('GET', '/api/auth/me', undefined, bearer)).body.data.id as number),
    );
    const remove = (by: 0 | 1) => () => call('DELETE', `/api/users/${ids[1 - by]}`, undefined, sessions[by]);
    const { begun, results } = await countBegun(/from "users" .* for no key update/, remove(0), remove(1));
    expect([begun, statusesOf(results)]).toEqual([2, [200, 401]]);
  });

  test('by an enrolment and the deletion of its network: first of the network', async () => {
    const { key, path } = await makePeer();
    const { begun, results } = await countBegun(
      /from "enrollment_keys" .* for no key update/,
      () => enroll(key),
      () => call('DELETE', path),
    );
    expect([begun, statusesOf(results)]).toEqual([2, [201, 200]]);
  });
});

test('an event is seen after all with lower ids: until one is committed, the next is not stored', async () => {
  const { network, key, peerPath, peerToken } = await makePeer();
  const events = () => count('events', network);
  const before = await events();
  const held = statements.hold(/^insert into "events"/, 'after');
  const first = enroll(key);
  await held.reached;
  const second = call('POST', `${peerPath}/report`, { problem: 'nft failed' }, peerToken);
  await untilStalled(plane.dataDir, second);
  if (postgres !== null) expect(await events()).toBe(before);
  held.release();
  expect(statusesOf([await first, await second])).toEqual([201, 200]);
  expect(await events()).toBe(before + 2);
});

test('the next expiry is read once a peer that may be the next is committed', async () => {
  const { peerPath } = await makePeer();
  let reads = 0;
  const stop = statements.observe((sql) => {
    if (/^select distinct "network_id" from "peers" where "expires_at"/.test(sql)) reads += 1;
  });
  onTestFinished(stop);
  const held = statements.hold(/^commit$/, 'before');
  const change = call('PATCH', peerPath, { expires_at: new Date(plane.clock.now().getTime() + hour).toISOString() });
  await held.reached;
  // In SQLite all others wait for the transaction.
  if (postgres !== null) expect((await plane.call('GET', '/readyz')).status).toBe(200);
  expect(reads).toBe(0);
  held.release();
  expect((await change).status).toBe(200);
  await eventually('it is read', () => reads === 1);
});

/** Works with as many connections to the database as there may be processes: SQLite serves one. */
async function withReplicas(work: (one: Kysely<Tables>, other: Kysely<Tables>) => Promise<void>): Promise<void> {
  await withDatabase(plane.dataDir, (one) =>
    postgres === null ? work(one, one) : withDatabase(plane.dataDir, (other) => work(one, other)),
  );
}

describe('of two replicas at once, one', () => {
  const eventsOf = (network: number) =>
    withDatabase(plane.dataDir, async (db) => {
      const rows = await db.selectFrom('events').select('type').where('network_id', '=', network).execute();
      return rows.map(({ type }) => type).filter((type) => type !== 'peer.enrolled');
    });

  test('expires a peer', () =>
    withReplicas(async (one, other) => {
      const { network, id } = await makePeer();
      const expires_at = plane.clock.now().toISOString();
      // By a request, the control plane itself would expire it.
      await one.updateTable('peers').set({ expires_at }).where('id', '=', id).execute();
      await contend(
        () => expirePeers(contextOver(one, plane)),
        () => expirePeers(contextOver(other, plane)),
      );
      expect(await eventsOf(network)).toEqual(['peer.removed']);
    }));

  test('names the next relay', () =>
    withReplicas(async (one, other) => {
      const { network, id, key, peerPath, path } = await makePeer();
      await call('PATCH', peerPath, { endpoint: '203.0.113.1:51820' });
      const next = await enroll(key, { peer_type: 'connector', endpoint: '203.0.113.2:51820' });
      const nextId: number = next.body.data.peer.id;
      await savePeerHealth(one, id, { announced: 'offline' });
      await savePeerHealth(one, nextId, { announced: 'online' });
      const { revision } = (await call('GET', path)).body.data;
      await contend(
        () => reviseRelay(contextOver(one, plane), network),
        () => reviseRelay(contextOver(other, plane), network),
      );
      expect((await call('GET', path)).body.data).toMatchObject({ relay: nextId, revision: revision + 1 });
      expect(await eventsOf(network)).toEqual(['relay.changed', 'relay.changed']);
    }));

  test('states that a host is online', () =>
    withReplicas(async (one, other) => {
      const { network, id } = await makePeer();
      await savePeerHealth(one, id, { last_seen: plane.clock.now().toISOString() });
      const evaluate = (db: Kysely<Tables>) => async () => {
        const noted = Promise.withResolvers<unknown>();
        const failures = { note: (_part: unknown, error: unknown) => noted.resolve(error) };
        const presence = { silenceOf: () => null, setOnline: () => {} };
        const options = { keepsPresence: true, tickMs: 1e9, settleMs: 1, failures };
        const evaluator = new Evaluator(contextOver(db, plane), presence, options);
        evaluator.schedule(network);
        expect(await noted.promise).toBeNull();
        await evaluator.stop();
      };
      // Both find it before one writes.
      await contend(evaluate(one), evaluate(other), /^insert into "network_health"/);
      expect(await eventsOf(network)).toEqual(['peer.online']);
    }));

  test('states that a host is cloned', () =>
    withReplicas(async (one, other) => {
      const { network, id: peer } = await makePeer();
      const now = plane.clock.now().getTime();
      const see = (db: Kysely<Tables>, id: string, minute: number) =>
        observeInstances(
          contextOver(db, plane),
          [{ peer, network, instances: [{ id, since: now + minute * 60_000 }] }],
          now + 1e7,
        );
      for (const [minute, id] of ['a', 'b'].entries()) await see(one, id, minute);
      await contend(
        () => see(one, 'a', 2),
        () => see(other, 'a', 2),
        /^insert into "network_health"/,
      );
      expect(await eventsOf(network)).toEqual(['peer.cloned']);
    }));

  test('takes a delivery', () =>
    withReplicas(async (one, other) => {
      const at = plane.clock.now().toISOString();
      const row = { event_id: 1, body: '{}', created_at: at, attempts: 0, next_at: at };
      await one.insertInto('deliveries').values(row).execute();
      const until = new Date(plane.clock.now().getTime() + 60_000).toISOString();
      const claim = (db: Kysely<Tables>) => () =>
        transact(db, (transaction) => claimDeliveries(transaction, { now: at, until, limit: 8 }));
      const taken = await contend(claim(one), claim(other));
      expect(taken.map(({ length }) => length)).toEqual([1, 0]);
    }));
});
