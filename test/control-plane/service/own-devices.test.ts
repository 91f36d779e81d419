import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Role } from '../../../src/contract/auth.ts';
import { extendOwnDevices } from '../../../src/control-plane/service/devices-of-user.ts';
import { type Identity, makeIdentity, proveEnrollment, proveKey } from '../../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { eventually } from '../../lab/eventually.ts';
import {
  closePlane,
  contextOver,
  enroll,
  hour,
  makeKey,
  makeNetwork,
  owner,
  publicKey,
  withDatabase,
} from '../harness.ts';
import { long, openWaiting, read, untilWaiting, type Waiting } from '../push/long-poll.ts';

const password = 'a long enough password';
const settings = { roles: ['member', 'viewer'], limit: 2, reauth_hours: null };

let on: Waiting;
let root: string;
let network: number;
let server: { id: number; token: string };
let made = 0;

beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => closePlane(on.plane));
beforeEach(async () => {
  root = await logIn(owner);
  network = await makeNetwork(on.plane, root);
  const { data } = (await enroll(on.plane, await makeKey(on.plane, root, network), { name: 'server' })).body;
  server = { id: data.peer.id, token: data.access_token };
  await allow(settings);
});

interface Person {
  readonly id: number;
  readonly email: string;
  readonly password: string;
  token: string;
}

async function logIn({ email, password }: { email: string; password: string }): Promise<string> {
  return (await on.plane.call('POST', '/api/auth/login', { body: { email, password } })).body.data.access_token;
}

/** A new user, who has just logged in. */
async function makeUser(role: Role = 'viewer'): Promise<Person> {
  const email = `person-${++made}@example.net`;
  const { body } = await on.plane.call('POST', '/api/users', { token: root, body: { email, password, role } });
  return { id: body.data.id, email, password, token: await logIn({ email, password }) };
}

const path = (rest = '') => `/api/networks/${network}${rest}`;
const allow = (self_enroll: object | null, token = root) =>
  on.plane.call('PATCH', path(), { token, body: { self_enroll } });
const mint = ({ token }: { readonly token: string }, body: object = {}, at = path()) =>
  on.plane.call('POST', `${at}/own-devices`, { token, body });
const change = (id: number, body: object, token = root) =>
  on.plane.call('PATCH', path(`/peers/${id}`), { token, body });
const list = async (token = root) => (await on.plane.call('GET', path('/peers'), { token })).body.data;
const peer = async (id: number) => (await on.plane.call('GET', path(`/peers/${id}`), { token: root })).body.data;
const mapped = async () => {
  const { body } = await on.plane.call('GET', path(), { token: server.token });
  return body.data.peers.map(({ id }: { id: number }) => id);
};
const own = async ({ token }: { readonly token: string }) =>
  (await on.plane.call('GET', '/api/auth/devices', { token })).body.data;
const from = (hours: number) => new Date(on.plane.clock.now().getTime() + hours * hour).toISOString();
const keyOf = async (who: Person): Promise<string> => (await mint(who)).body.data.enrollment_token;

async function audited(action: string) {
  const { data } = (await on.plane.call('GET', `/api/audit?action=${action}`, { token: root })).body;
  return data[0];
}
const lastEvents = async () =>
  (await on.plane.call('GET', path('/events'), { token: root })).body.data
    .filter(({ type }: { type: string }) => type !== 'peer.online' && type !== 'peer.offline')
    .map(({ type, peer, details }: { type: string; peer: { id: number } | null; details: object }) => [
      type,
      peer?.id,
      details,
    ]);

interface Device {
  readonly id: number;
  readonly token: string;
  readonly address: string;
}

async function join(who: Person, fields: object = {}): Promise<Device> {
  const { status, body } = await enroll(on.plane, await keyOf(who), { peer_type: 'admin_device', ...fields });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return { id: body.data.peer.id, token: body.data.access_token, address: body.data.peer.address };
}

let seed = 0;
function enrolWith(identity: Identity, key: string, fields: object = {}, serial = ++seed) {
  const public_key = parsePublicKey(publicKey());
  const tokenHash = createHash('sha256').update(key).digest('hex');
  const proof = proveKey(identity, public_key, new Date(serial));
  return on.plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name: 'laptop', peer_type: 'admin_device', public_key, ...fields },
    headers: {
      'peer-identity-key': identity.key,
      'peer-identity-proof': proveEnrollment(identity, { publicKey: public_key, tokenHash }),
      'peer-key-proof': `${proof.serial} ${proof.signature}`,
    },
  });
}
const newIdentity = () => makeIdentity(new Uint8Array(32).fill(++seed));

describe('a user enrols an own device', () => {
  test('the peer has its user, for people alone; owners have an entry and an event', async () => {
    const ann = await makeUser();
    const { status, body } = await mint(ann);
    expect([status, body.data]).toEqual([
      201,
      {
        id: expect.any(Number),
        enrollment_token: expect.stringMatching(/^cpn_/),
        expires_at: from(1 / 6),
        network: { id: network, name: 'office' },
      },
    ]);
    const enrolled = await enroll(on.plane, body.data.enrollment_token, { name: 'laptop', peer_type: 'admin_device' });
    const { id, address } = enrolled.body.data.peer;
    expect(enrolled.status).toBe(201);
    const user = { id: ann.id, email: ann.email };
    expect((await list()).map((each: { user?: object }) => each.user)).toEqual([undefined, user]);
    expect((await peer(id)).user).toEqual(user);
    const seen = await on.plane.call('GET', path('/peers'), { token: server.token });
    const map = await on.plane.call('GET', path(), { token: server.token });
    for (const each of [enrolled, seen, map]) expect(JSON.stringify(each.body)).not.toContain(ann.email);
    expect(await audited('peer.self_enroll')).toMatchObject({
      actor: { kind: 'user', id: ann.id, name: ann.email },
      target: { id, name: 'laptop' },
      details: { network, address },
    });
    expect((await lastEvents()).at(-1)).toEqual(['peer.enrolled', id, { reason: 'enrolled', user: ann.email }]);
    expect(await own(ann)).toEqual([
      {
        ...{ id, name: 'laptop', network: { id: network, name: 'office' }, address, state: 'active' },
        ...{ created_at: from(0), expires_at: null, reauth_hours: null },
      },
    ]);
    expect(await own(await makeUser())).toEqual([]);
  });

  test('with a key for one admin_device, that no list has and that ends after ten minutes', async () => {
    const ann = await makeUser();
    const key = await keyOf(ann);
    const { body } = await on.plane.call('GET', path('/enrollment-keys?all=true'), { token: root });
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['rack']);
    for (const peer_type of ['origin', 'connector'])
      expect((await enroll(on.plane, key, { peer_type })).status).toBe(403);
    const first = await enroll(on.plane, key, { peer_type: 'admin_device' }, 'once');
    expect(first.body.data.peer).not.toHaveProperty('tags');
    expect((await enroll(on.plane, key, { peer_type: 'admin_device' })).status).toBe(403);
    const late = await keyOf(ann);
    on.plane.clock.advance(10 * 60_000);
    const refused = await enroll(on.plane, late, { peer_type: 'admin_device' });
    expect([refused.status, refused.body.message]).toEqual([403, 'the enrolment key has expired']);
  });

  test('only in a session with a recent login or the password, and never by a token', async () => {
    const ann = await makeUser();
    const { body } = await on.plane.call('POST', '/api/auth/tokens', { token: ann.token, body: { name: 'ci' } });
    expect((await mint({ token: body.data.access_token })).status).toBe(403);
    expect((await mint({ token: server.token })).status).toBe(403);
    on.plane.clock.advance(6 * 60_000);
    const stale = await mint(ann);
    expect([stale.status, Object.keys(stale.body.errors)]).toEqual([422, ['password']]);
    expect((await mint(ann, { password: 'wrong' })).status).toBe(403);
    expect((await mint(ann, { password })).status).toBe(201);
  });

  test('where the network lets its role, and no other', async () => {
    const admin = await makeUser('admin');
    const refused = await mint(admin);
    expect([refused.status, refused.body.message]).toEqual([
      403,
      `network office lets member, viewer enrol own devices, and ${admin.email} is admin; ask an admin`,
    ]);
    const [ann, eve] = [await makeUser(), await makeUser()];
    const [early, gone] = [await keyOf(ann), await keyOf(eve)];
    await on.plane.call('DELETE', `/api/users/${eve.id}?keep_keys=true`, { token: root });
    await allow(null);
    expect((await mint(ann)).body.message).toBe(
      'network office does not let users enrol own devices; ask an admin for an enrolment key',
    );
    for (const key of [early, gone])
      expect((await enroll(on.plane, key, { peer_type: 'admin_device' })).status).toBe(403);
    const foreign = await on.plane.signIn('viewer', await on.plane.addOrganization(`other ${++made}`));
    expect((await mint({ token: foreign })).status).toBe(404);
  });

  test('as often as the network allows, keys that were made at once included; a suspended device counts', async () => {
    const ann = await makeUser();
    const keys = [await keyOf(ann), await keyOf(ann), await keyOf(ann)];
    const enrolled = [];
    for (const key of keys) enrolled.push(await enroll(on.plane, key, { peer_type: 'admin_device' }));
    expect(enrolled.map(({ status }) => status)).toEqual([201, 201, 403]);
    const [first] = await own(ann);
    await change(first.id, { suspended: true });
    expect((await mint(ann)).body.message).toMatch(/as many own devices in network office as it allows, 2; remove one/);
    const removal = await on.plane.call('DELETE', `/api/auth/devices/${first.id}`, { token: ann.token });
    expect([removal.status, removal.body.message]).toEqual([
      403,
      'this device is suspended; an admin resumes or removes it',
    ]);
    expect((await mint(await makeUser())).status).toBe(201);
  });

  test('a device whose expiry an admin set keeps its place, before and after its end', async () => {
    const ann = await makeUser();
    const device = await join(ann);
    await change(device.id, { expires_at: from(1) });
    for (const hours of [0, 2]) {
      on.plane.clock.advance(hours * hour);
      const removal = await on.plane.call('DELETE', `/api/auth/devices/${device.id}`, { token: ann.token });
      expect([removal.status, removal.body.message]).toEqual([
        403,
        'an admin set the expiry of this device; an admin removes it',
      ]);
    }
    expect(await own(ann)).toHaveLength(1);
  });

  test('with ten keys at most that wait, and unused ones are deleted later', async () => {
    const ann = await makeUser();
    for (let count = 0; count < 10; count += 1) expect((await mint(ann)).status).toBe(201);
    expect((await mint(ann)).status).toBe(429);
    on.plane.clock.advance(11 * 60_000);
    expect((await mint(ann, { password })).status).toBe(201);
    const left = await withDatabase(on.plane.dataDir, (db) =>
      db.selectFrom('enrollment_keys').select('id').where('user_id', '=', ann.id).execute(),
    );
    expect(left).toHaveLength(1);
  });

  test('a retry of the enrolment gets the same device', async () => {
    const ann = await makeUser();
    const [key, public_key] = [await keyOf(ann), publicKey()];
    const twice = [];
    for (let count = 0; count < 2; count += 1)
      twice.push(
        (await enroll(on.plane, key, { peer_type: 'admin_device', public_key }, 'again')).body.data.access_token,
      );
    expect(twice[0]).toBe(twice[1]);
    expect(await own(ann)).toHaveLength(1);
  });
});

test.each<[Role, number]>([
  ['owner', 200],
  ['admin', 200],
  ['member', 403],
  ['viewer', 403],
])('who may enrol own devices is set by an %s: %i', async (role, status) => {
  expect((await allow({ ...settings, limit: 7 }, await on.plane.signIn(role))).status).toBe(status);
  const { body } = await on.plane.call('GET', path(), { token: root });
  expect(body.data.self_enroll.limit).toBe(status === 200 ? 7 : 2);
});

test('settings without a role, and beyond their limits, are refused', async () => {
  for (const fields of [{ roles: [] }, { limit: 0 }, { limit: 101 }, { reauth_hours: 0 }, { roles: ['nobody'] }])
    expect((await allow({ ...settings, ...fields })).status).toBe(422);
  await allow(null);
  expect((await on.plane.call('GET', path(), { token: root })).body.data).not.toHaveProperty('self_enroll');
});

describe('a user and its own device', () => {
  test('a viewer renames and removes its own device, by a token too, and no other', async () => {
    const [ann, eve] = [await makeUser(), await makeUser('member')];
    const device = await join(ann);
    const { body } = await on.plane.call('POST', '/api/auth/tokens', { token: ann.token, body: { name: 'ci' } });
    const token = body.data.access_token;
    const at = (id: number) => `/api/auth/devices/${id}`;
    const renamed = await on.plane.call('PATCH', at(device.id), { token, body: { name: 'travel' } });
    expect([renamed.status, renamed.body.data.name]).toEqual([200, 'travel']);
    expect((await on.plane.call('PATCH', at(device.id), { token, body: { name: 'server' } })).status).toBe(422);
    for (const [method, id, who] of [
      ['PATCH', server.id, ann.token],
      ['DELETE', server.id, ann.token],
      ['PATCH', device.id, eve.token],
      ['DELETE', device.id, eve.token],
      ['DELETE', device.id, root],
    ] as const) {
      const reply = await on.plane.call(method, at(id), {
        token: who,
        ...(method === 'PATCH' && { body: { name: 'x' } }),
      });
      expect([reply.status, reply.body.message]).toEqual([404, 'there is no such own device']);
    }
    expect((await on.plane.call('DELETE', path(`/peers/${device.id}`), { token: ann.token })).status).toBe(403);
    expect((await on.plane.call('DELETE', at(device.id), { token })).status).toBe(200);
    expect(await mapped()).toEqual([server.id]);
    expect(await audited('peer.delete')).toMatchObject({ actor: { id: ann.id }, target: { id: device.id } });
  });

  test.each<[string, (user: string) => Promise<unknown>, RegExp | null]>([
    ['is removed', (user) => on.plane.call('DELETE', `/api/users/${user}`, { token: root }), null],
    ['becomes an admin', (user) => setRole(Number(user), 'admin'), /./],
  ])('the device is out of the network when its user %s, and only an admin resumes it', async (_what, lose, known) => {
    const ann = await makeUser('member');
    const device = await join(ann);
    const [since, other] = [read(on, network, 4, long, server.token), read(on, network, 4, long, device.token)];
    await untilWaiting(on, network, 2);
    await lose(String(ann.id));
    expect((await since).body.data.peers.map(({ id }: { id: number }) => id)).toEqual([server.id]);
    expect((await other).status).toBe(403);
    expect((await peer(device.id)).user).toEqual({ id: known ? ann.id : null, email: ann.email });
    expect(await audited('peer.suspend')).toMatchObject({
      actor: { kind: 'user', name: owner.email },
      target: { id: device.id },
      details: { network, user: ann.email, because: known ? 'role changed' : 'user removed' },
    });
    expect((await lastEvents()).at(-1)).toEqual(['peer.removed', device.id, { reason: 'suspended' }]);
    if (known) {
      await setRole(ann.id, 'member');
      // A member resumes peers, but not its own device.
      const resumed = await change(device.id, { suspended: false }, ann.token);
      expect([resumed.status, resumed.body.message]).toEqual([403, expect.stringContaining('owner, admin')]);
    }
    expect(await mapped()).toEqual([server.id]);
    await change(device.id, { suspended: false }, await on.plane.signIn('admin'));
    expect(await mapped()).toEqual([server.id, device.id]);
  });

  test('a role that the network lets, and a network that lets users no longer, leave it', async () => {
    const ann = await makeUser('member');
    const device = await join(ann);
    await setRole(ann.id, 'viewer');
    await allow({ ...settings, roles: ['owner'] });
    await allow(null);
    await setRole(ann.id, 'member');
    expect(await mapped()).toEqual([server.id, device.id]);
    await setRole(ann.id, 'viewer');
    expect(await mapped()).toEqual([server.id]);
  });

  test('a user that is limited to other networks sees no device here', async () => {
    const ann = await makeUser();
    await join(ann);
    const other = await makeNetwork(on.plane, root, { name: 'other', private_cidr: '10.88.0.0/24' });
    const limit = (networks: number[]) =>
      on.plane.call('PATCH', `/api/users/${ann.id}`, {
        token: root,
        body: { networks, current_password: owner.password },
      });
    expect((await limit([network])).status).toBe(200);
    expect(await own(ann)).toHaveLength(1);
    expect((await limit([other])).status).toBe(200);
    expect(await own(ann)).toEqual([]);
  });

  test('other users and their devices stay', async () => {
    const [ann, bob] = [await makeUser(), await makeUser()];
    const [, device] = [await join(ann), await join(bob)];
    await on.plane.call('DELETE', `/api/users/${ann.id}`, { token: root });
    expect(await mapped()).toEqual([server.id, device.id]);
  });
});

describe('at the same time', () => {
  test('a removal of the user and an enrolment leave no device of it in the network', async () => {
    for (let round = 0; round < 5; round += 1) {
      const ann = await makeUser();
      await join(ann);
      const key = await keyOf(ann);
      const [removal, enrolled] = await Promise.all([
        on.plane.call('DELETE', `/api/users/${ann.id}`, { token: root }),
        enroll(on.plane, key, { peer_type: 'admin_device' }),
      ]);
      expect([removal.status, [201, 403].includes(enrolled.status)]).toEqual([200, true]);
      expect(await mapped()).toEqual([server.id]);
    }
  });

  test('several enrolments stay within the limit', async () => {
    await allow({ ...settings, limit: 1 });
    const ann = await makeUser();
    const keys = [await keyOf(ann), await keyOf(ann), await keyOf(ann), await keyOf(ann)];
    const replies = await Promise.all(keys.map((key) => enroll(on.plane, key, { peer_type: 'admin_device' })));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([201, 403, 403, 403]);
  });

  test('logins, and a change of the network, end without a deadlock', async () => {
    await allow({ ...settings, reauth_hours: 24 });
    const ann = await makeUser();
    const device = await join(ann);
    on.plane.clock.advance(hour);
    const replies = await Promise.all([
      ...[1, 2, 3].map(() => on.plane.call('POST', '/api/auth/login', { body: ann })),
      ...[1, 2, 3].map((count) => allow({ ...settings, reauth_hours: 24 + count })),
      ...[1, 2].map((count) => change(device.id, { name: `laptop-${count}` })),
    ]);
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
  });
});

const setRole = (id: number, role: Role) =>
  on.plane.call('PATCH', `/api/users/${id}`, { token: root, body: { role, current_password: owner.password } });

describe('a device that enrols again', () => {
  test('by its user keeps the peer, and takes no further place', async () => {
    await allow({ ...settings, limit: 1 });
    const [ann, identity] = [await makeUser(), newIdentity()];
    const keys = [await keyOf(ann), await keyOf(ann)];
    const first = (await enrolWith(identity, keys[0] ?? '')).body.data;
    const again = await enrolWith(identity, keys[1] ?? '');
    expect([again.status, again.body.data.peer]).toMatchObject([
      201,
      { id: first.peer.id, address: first.peer.address },
    ]);
    expect((await peer(first.peer.id)).user).toEqual({ id: ann.id, email: ann.email });
    expect(await audited('peer.replace')).toMatchObject({ actor: { kind: 'user', id: ann.id } });
  });

  test('by another user, or as a server of the network, is refused', async () => {
    const [ann, eve] = [await makeUser(), await makeUser()];
    const [laptop, rack] = [newIdentity(), newIdentity()];
    const { id } = (await enrolWith(laptop, await keyOf(ann))).body.data.peer;
    const tagged = await makeKey(on.plane, root, network, { tags: ['production'] });
    await enrolWith(rack, tagged, { peer_type: 'origin' });
    for (const identity of [laptop, rack]) {
      const refused = await enrolWith(identity, await keyOf(eve));
      expect([refused.status, refused.body.message]).toEqual([
        403,
        expect.stringMatching(/is no own device of person-/),
      ]);
    }
    expect(await own(eve)).toEqual([]);
    expect((await peer(id)).user.id).toBe(ann.id);
  });

  test.each<Role>(['owner', 'member'])(
    'with a key of the network, made by an %s, stays an own device until it is removed',
    async (role) => {
      await allow({ ...settings, reauth_hours: 24 });
      const [ann, identity] = [await makeUser('member'), newIdentity()];
      const { id } = (await enrolWith(identity, await keyOf(ann))).body.data.peer;
      const before = await peer(id);
      const key = () => makeKey(on.plane, role === 'owner' ? root : ann.token, network);
      on.plane.clock.advance(hour);
      expect((await enrolWith(identity, await key(), { peer_type: 'origin' })).body.data.peer.id).toBe(id);
      expect(await own(ann)).toHaveLength(1);
      const { user, expires_at, reauth_hours } = before;
      expect(await peer(id)).toMatchObject({ user, expires_at, reauth_hours });
      await on.plane.call('DELETE', path(`/peers/${id}`), { token: root });
      const fresh = (await enrolWith(identity, await key(), { peer_type: 'origin' })).body.data.peer;
      expect(await own(ann)).toEqual([]);
      await on.plane.call('DELETE', `/api/users/${ann.id}?keep_keys=true`, { token: root });
      expect(await mapped()).toEqual([server.id, fresh.id]);
    },
  );

  test('as a suspended one is refused', async () => {
    const [ann, identity] = [await makeUser(), newIdentity()];
    const { id } = (await enrolWith(identity, await keyOf(ann))).body.data.peer;
    await change(id, { suspended: true });
    expect((await enrolWith(identity, await keyOf(ann))).status).toBe(403);
  });
});

describe('in a network with reauth', () => {
  beforeEach(() => allow({ ...settings, reauth_hours: 24 }));
  const expired = async (id: number) => {
    await eventually('the expiry', async () => {
      const [type, peer] = (await lastEvents()).at(-1) ?? [];
      return type === 'peer.removed' && peer === id;
    });
    return (await lastEvents()).at(-1)?.[2];
  };

  test('each login moves the end of the own devices, and of no other peer', async () => {
    const [ann, bob] = [await makeUser(), await makeUser()];
    const [device, other] = [await join(ann), await join(bob)];
    expect(await peer(device.id)).toMatchObject({ expires_at: from(24), reauth_hours: 24 });
    const end = from(24);
    on.plane.clock.advance(20 * hour);
    await logIn(ann);
    expect(await peer(device.id)).toMatchObject({ expires_at: from(24) });
    expect(await peer(other.id)).toMatchObject({ expires_at: end });
    expect(await peer(server.id)).not.toHaveProperty('expires_at');
    const { body } = await on.plane.call('GET', path(), { token: server.token });
    expect(body.data.peers.map((each: object) => 'reauth_hours' in each)).toEqual([false, true, true]);
    const { revision } = body.data;
    await logIn(ann);
    expect((await on.plane.call('GET', path(), { token: server.token })).body.data.revision).toBe(revision);
  });

  test('an expired device comes back by the next login, with its token and address', async () => {
    const ann = await makeUser();
    const device = await join(ann);
    on.plane.clock.advance(24 * hour);
    const refused = await on.plane.call('GET', path(), { token: device.token });
    expect([refused.status, refused.body.message]).toEqual([
      403,
      `this peer expired on ${from(0)}; it is back in its network once its user logs in to the control plane`,
    ]);
    root = await logIn(owner);
    ann.token = await logIn(ann);
    expect(await peer(device.id)).toMatchObject({ address: device.address, expires_at: from(24) });
    expect((await on.plane.call('GET', path(), { token: device.token })).status).toBe(200);
    expect(await mapped()).toEqual([server.id, device.id]);
  });

  test('the return of a device that was out of the map has an event and an entry', async () => {
    const ann = await makeUser();
    const device = await join(ann);
    on.plane.clock.advance(25 * hour);
    root = await logIn(owner);
    // The service looks for expired peers after each change of an expiry.
    await change(server.id, { expires_at: from(1000) });
    expect(await expired(device.id)).toEqual({ reason: 'expired' });
    await logIn(ann);
    expect((await lastEvents()).at(-1)).toEqual(['peer.enrolled', device.id, { reason: 'resumed' }]);
    expect(await audited('peer.resume')).toMatchObject({
      actor: { kind: 'system' },
      target: { id: device.id },
      details: { network, expires_at: from(24), user: ann.email, because: 'login' },
    });
  });

  test('an end that an admin set stays through logins; a member sets none', async () => {
    const ann = await makeUser('member');
    const device = await join(ann);
    expect((await change(device.id, { expires_at: null }, ann.token)).status).toBe(403);
    await change(device.id, { expires_at: from(3) });
    await logIn(ann);
    expect(await peer(device.id)).toMatchObject({ expires_at: from(3) });
    expect(await peer(device.id)).not.toHaveProperty('reauth_hours');
    on.plane.clock.advance(4 * hour);
    await logIn(ann);
    expect((await on.plane.call('GET', path(), { token: device.token })).status).toBe(403);
  });

  test('a login resumes no suspended device', async () => {
    const ann = await makeUser();
    const device = await join(ann);
    await change(device.id, { suspended: true });
    on.plane.clock.advance(30 * hour);
    await logIn(ann);
    root = await logIn(owner);
    expect(await mapped()).toEqual([server.id]);
    // The login moved its end, so an admin can resume it.
    await change(device.id, { suspended: false });
    expect(await mapped()).toEqual([server.id, device.id]);
  });

  test('other hours are for all own devices, from now; none frees them, and off keeps them', async () => {
    const ann = await makeUser();
    const device = await join(ann);
    await allow({ ...settings, reauth_hours: 8 });
    expect(await peer(device.id)).toMatchObject({ expires_at: from(8), reauth_hours: 8 });
    await allow({ ...settings, reauth_hours: 100 });
    expect(await peer(device.id)).toMatchObject({ expires_at: from(8), reauth_hours: 100 });
    await allow(null);
    on.plane.clock.advance(hour);
    await logIn(ann);
    expect(await peer(device.id)).toMatchObject({ expires_at: from(100), reauth_hours: 100 });
    await allow(settings);
    expect(await peer(device.id)).toMatchObject({ expires_at: from(100), reauth_hours: 100 });
    await allow({ ...settings, reauth_hours: 100 });
    await allow(settings);
    for (const field of ['expires_at', 'reauth_hours']) expect(await peer(device.id)).not.toHaveProperty(field);
    await allow({ ...settings, reauth_hours: 5 });
    expect(await peer(device.id)).toMatchObject({ expires_at: from(5), reauth_hours: 5 });
  });

  test('without a login, as while an issuer is down, a device stays, and none comes back', async () => {
    const ann = await makeUser();
    const device = await join(ann);
    const extend = () =>
      withDatabase(on.plane.dataDir, (db) =>
        extendOwnDevices(
          contextOver(db, on.plane, { rescheduleExpiry: () => {} }),
          { organizationId: 1, userId: ann.id },
          { isLogin: false },
        ),
      );
    const end = from(24);
    on.plane.clock.advance(hour);
    await extend();
    expect(await peer(device.id)).toMatchObject({ expires_at: end });
    on.plane.clock.advance(hour);
    await extend();
    expect(await peer(device.id)).toMatchObject({ expires_at: from(24) });
    on.plane.clock.advance(24 * hour);
    root = await logIn(owner);
    await extend();
    expect(await peer(device.id)).toMatchObject({ expires_at: from(0) });
  });
});
