import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { fingerprintOf } from '../../../src/core/crypto/fingerprint.ts';
import { type Identity, makeIdentity, proveEnrollment, proveKey } from '../../../src/core/crypto/identity.ts';
import { type PublicKey, parsePublicKey } from '../../../src/core/crypto/keys.ts';
import {
  closePlane,
  enroll,
  hour,
  makeKey,
  makeNetwork,
  owner,
  publicKey,
  type Reply,
  withDatabase,
} from '../harness.ts';
import { openWaiting, untilWaiting, type Waiting } from '../push/long-poll.ts';

let on: Waiting;
let network: number;
let key: string;
let edge: { id: number; token: string };
let seed = 0;
beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => closePlane(on.plane));
/** A network with routes and a connector, in which new peers wait from now on. */
beforeEach(async () => {
  network = await makeNetwork(on.plane, on.token, { routes: ['192.168.1.0/24'] });
  key = await makeKey(on.plane, on.token, network);
  edge = of(await enroll(on.plane, key, { name: 'edge', peer_type: 'connector', endpoint: '198.51.100.1:51820' }));
  await setApproval('required');
});

const path = () => `/api/networks/${network}`;
const call = (method: string, rest: string, body?: object, token = on.token) =>
  on.plane.call(method, `${path()}${rest}`, { token, ...(body && { body }) });
const setApproval = (approval: string, token = on.token) => call('PATCH', '', { approval }, token);
const approve = (id: number, token = on.token) => call('POST', `/peers/${id}/approve`, undefined, token);
const of = ({ status, body }: Reply) => {
  expect([status, body.errors]).toEqual([201, undefined]);
  return { id: body.data.peer.id, token: body.data.access_token, peer: body.data.peer, network: body.data.network };
};
const join = async (fields: object = {}) => of(await enroll(on.plane, key, { name: 'laptop', ...fields }));
const map = async (token = on.token) => (await call('GET', '', undefined, token)).body.data;
const names = (peers: { name: string }[]) => peers.map(({ name }) => name);
const newIdentity = () => makeIdentity(new Uint8Array(32).fill(++seed));

async function prove(identity: Identity, { serial = 1, name = 'laptop' } = {}) {
  const public_key = parsePublicKey(publicKey());
  const { serial: at, signature } = proveKey(identity, public_key, new Date(serial));
  const tokenHash = createHash('sha256').update(key).digest('hex');
  const headers = {
    'peer-identity-key': identity.key,
    'peer-identity-proof': proveEnrollment(identity, { publicKey: public_key as PublicKey, tokenHash }),
    'peer-key-proof': `${at} ${signature}`,
  };
  const body = { enrollment_token: key, name, public_key };
  return of(await on.plane.call('POST', '/api/networks/enroll', { body, headers }));
}

async function listed(rest: '/events' | '/audit', type: string) {
  const reply = rest === '/audit' ? await on.plane.call('GET', '/api/audit?limit=100', { token: on.token }) : null;
  const { data } = (reply ?? (await call('GET', '/events?limit=100'))).body;
  return data.filter((each: { type?: string; action?: string }) => (each.type ?? each.action) === type);
}

describe('a peer that waits', () => {
  test('enrols, and is in no map: its own has no other peer, route, relay and nonce; the network has no new revision', async () => {
    const before = await map();
    const { id, token, peer, network: enrolled } = await join();
    expect(peer).toMatchObject({ id, awaiting_approval: on.plane.clock.now().toISOString() });
    expect(peer).not.toHaveProperty('suspended_at');
    expect(await map()).toEqual(before);
    expect(await map(edge.token)).toEqual(before);
    const own = await map(token);
    expect(own).toEqual(enrolled);
    expect(own).toEqual({
      ...{ id: network, name: 'office', description: '', private_cidr: '10.77.0.0/24', routes: [] },
      ...{ vpn_type: 'wireguard', revision: 0, etag: expect.stringMatching(/^"0-[\w-]{12}"$/), peers: [peer] },
    });
  });

  test('reads no peers of others, and may only read and remove itself; its requests are no signs of life', async () => {
    const { id, token } = await join();
    const requests = [
      ['GET', '/peers', undefined],
      ['PATCH', `/peers/${id}`, { name: 'other' }],
      ['PATCH', `/peers/${id}`, { suspended: false }],
      ['PATCH', `/peers/${edge.id}`, { name: 'other' }],
      ['POST', `/peers/${id}/report`, {}],
      ['POST', '/peers/self/paths', {}],
      ['POST', `/peers/${id}/approve`, undefined],
      ['DELETE', `/peers/${edge.id}`, undefined],
    ] as const;
    for (const [method, rest, body] of requests) {
      const { status } = await call(method, rest, body, token);
      expect([method, rest, status]).toEqual([method, rest, 403]);
    }
    const refused = await call('PATCH', `/peers/${id}`, { name: 'other' }, token);
    expect(refused.body.message).toContain('this peer waits for approval');
    const health = (await call('GET', '/health')).body.data;
    expect(health.peers.map((peer: { id: number }) => peer.id)).toEqual([edge.id]);
    expect((await call('DELETE', `/peers/${id}`, undefined, token)).status).toBe(200);
    expect((await call('GET', '', undefined, token)).status).toBe(401);
  });

  test('waits by its long poll through other changes of the network, and receives the whole map with the approval', async () => {
    const { id, token, network: enrolled } = await join();
    const headers = { 'if-none-match': enrolled.etag, prefer: 'wait=45', 'a-im': 'cpn-delta' };
    const reply = on.plane.call('GET', path(), { token, headers });
    await untilWaiting(on, network);
    await call('PATCH', `/peers/${edge.id}`, { name: 'edge-1' });
    await untilWaiting(on, network);
    const approved = await approve(id);
    expect([approved.status, approved.body.data]).toEqual([
      200,
      expect.not.objectContaining({ suspended_at: expect.anything() }),
    ]);
    const { status, body } = await reply;
    expect([status, names(body.data.peers), body.data.routes]).toEqual([200, ['edge-1', 'laptop'], ['192.168.1.0/24']]);
    expect(body.data.peers[1]).not.toHaveProperty('awaiting_approval');
    expect(body.data).toMatchObject({ nonce: expect.any(String), relay: edge.id });
    expect(body.data).not.toHaveProperty('base');
    expect(names((await map(edge.token)).peers)).toEqual(['edge-1', 'laptop']);
  });

  test('gets a 304 where it has its map, and a new one with another name of the network', async () => {
    const { token, network: enrolled } = await join();
    const ask = () => on.plane.call('GET', path(), { token, headers: { 'if-none-match': enrolled.etag } });
    expect((await ask()).status).toBe(304);
    await call('PATCH', '', { name: 'lab' });
    expect((await ask()).body.data).toMatchObject({ name: 'lab', revision: 0 });
  });

  test('is shown to people with its identity, and as suspended to earlier clients', async () => {
    const identity = newIdentity();
    const { id } = await prove(identity);
    const { data } = (await call('GET', '/peers?suspended=true')).body;
    const since = on.plane.clock.now().toISOString();
    expect(data).toEqual([
      expect.objectContaining({ id, identity_key: identity.key, awaiting_approval: since, suspended_at: since }),
    ]);
    expect((await call('GET', `/peers/${id}`)).body.data).toMatchObject({ id, awaiting_approval: since });
    const [event, ...more] = await listed('/events', 'peer.awaiting_approval');
    expect([event, more]).toEqual([
      expect.objectContaining({
        peer: { id, name: 'laptop' },
        details: expect.objectContaining({ fingerprint: fingerprintOf(identity.key), fingerprint_of: 'identity_key' }),
      }),
      [],
    ]);
    expect(names((await listed('/events', 'peer.enrolled')).map(({ peer }: { peer: object }) => peer))).toEqual([
      'edge',
    ]);
  });

  test('is in no rule: a closed network names it to no host', async () => {
    await join();
    const rules = { mode: 'closed', rules: [{ name: 'all', from: ['any'], to: ['any'] }] };
    const set = await on.plane.call('PUT', `${path()}/rules`, { token: on.token, body: rules });
    expect(set.status).toBe(200);
    expect(JSON.stringify(await map(edge.token))).not.toContain('laptop');
  });

  test('claims no identity without a proof: its fingerprint is that of its public key', async () => {
    const identity = newIdentity();
    const body = { enrollment_token: key, name: 'laptop', public_key: publicKey() };
    const headers = { 'peer-identity-key': identity.key };
    const { peer } = of(await on.plane.call('POST', '/api/networks/enroll', { body, headers }));
    expect(peer).not.toHaveProperty('identity_key');
    const [{ details }] = await listed('/events', 'peer.awaiting_approval');
    expect(details).toMatchObject({ fingerprint_of: 'public_key', fingerprint: fingerprintOf(body.public_key) });
  });

  test('enrols again with its identity, and still waits, without another event', async () => {
    const identity = newIdentity();
    const { id, token } = await prove(identity);
    const { revision } = await map();
    const again = await prove(identity, { serial: 2 });
    expect(again.peer).toMatchObject({ id, awaiting_approval: expect.any(String) });
    expect((await call('GET', '', undefined, token)).status).toBe(401);
    expect(names((await map(again.token)).peers)).toEqual(['laptop']);
    expect((await map()).revision).toBe(revision);
    expect(await listed('/events', 'peer.awaiting_approval')).toHaveLength(1);
    expect((await enrolReplay()).body.data.peer).toMatchObject({ awaiting_approval: expect.any(String) });
  });

  async function enrolReplay() {
    const fields = { public_key: publicKey(), name: 'twice' };
    await enroll(on.plane, key, fields, 'one');
    return enroll(on.plane, key, fields, 'one');
  }

  test('leaves without a new revision where an admin refuses it, and its address is free', async () => {
    const { id, token, peer } = await join();
    const { revision } = await map();
    expect((await call('DELETE', `/peers/${id}`)).status).toBe(200);
    expect((await map()).revision).toBe(revision);
    expect((await call('GET', '', undefined, token)).status).toBe(401);
    expect((await approve(id)).status).toBe(404);
    expect(await listed('/events', 'peer.removed')).toHaveLength(1);
    expect(peer.address).toBe('10.77.0.2');
  });

  test('is gone after a week, with an entry and an event, and its address is free; an approved one stays', async () => {
    const [kept, late] = [await join({ name: 'kept' }), await join({ name: 'late' })];
    await approve(kept.id);
    on.plane.clock.advance(7 * 24 * hour + 1000);
    // The session of the owner has ended too. A peer with an end runs the timer.
    on = { ...on, token: await on.plane.signIn('owner') };
    const { revision } = await map();
    key = await makeKey(on.plane, on.token, network, { peer_expires_in_hours: 1 });
    const soon = await join({ name: 'soon' });
    await vi.waitFor(async () => expect((await call('GET', `/peers/${late.id}`)).status).toBe(404), {
      timeout: 20_000,
    });
    expect((await map()).revision).toBe(revision);
    expect((await call('GET', '', undefined, late.token)).status).toBe(401);
    expect(names((await call('GET', '/peers')).body.data)).toEqual(['edge', 'kept', 'soon']);
    expect(await listed('/audit', 'peer.delete')).toContainEqual(
      expect.objectContaining({
        actor: { kind: 'system', id: null, name: null },
        target: { kind: 'peer', id: late.id, name: 'late' },
        details: { network, address: late.peer.address, reason: 'not_approved' },
      }),
    );
    expect(await listed('/events', 'peer.removed')).toMatchObject([{ details: { reason: 'not_approved' } }]);
    expect((await approve(soon.id)).status).toBe(200);
  });
});

describe('an approval', () => {
  test('is for owners and admins, with a session or a personal token, in their organization', async () => {
    const others = await on.plane.addOrganization('others');
    const { id } = await join();
    for (const role of ['member', 'viewer'] as const)
      expect([role, (await approve(id, await on.plane.signIn(role))).status]).toEqual([role, 403]);
    expect((await approve(id, await on.plane.signIn('owner', others))).status).toBe(404);
    expect((await approve(id, edge.token)).status).toBe(403);
    expect(names((await map()).peers)).toEqual(['edge']);
    const admin = await on.plane.signIn('admin');
    const body = { name: 'script', expires_in_days: 1 };
    const made = await on.plane.call('POST', '/api/auth/tokens', { token: admin, body });
    expect(made.status).toBe(201);
    expect((await approve(id, made.body.data.token)).status).toBe(200);
    expect(names((await map()).peers)).toEqual(['edge', 'laptop']);
  });

  test('is recorded once with the identity, and a repeated one changes nothing', async () => {
    const identity = newIdentity();
    const { id, peer } = await prove(identity);
    expect((await approve(id)).status).toBe(200);
    const { revision } = await map();
    expect((await approve(id)).body.data).toMatchObject({ id, name: 'laptop' });
    expect((await map()).revision).toBe(revision);
    const entries = (await listed('/audit', 'peer.approve')).filter(
      ({ target }: { target: { id: number } }) => target.id === id,
    );
    const { address, public_key, peer_type } = peer;
    expect(entries).toEqual([
      expect.objectContaining({
        actor: expect.objectContaining({ kind: 'user' }),
        details: { network, address, public_key, peer_type, identity_key: identity.key },
      }),
    ]);
    expect(await listed('/events', 'peer.enrolled')).toMatchObject([
      { peer: { id: edge.id } },
      { peer: { id }, details: { reason: 'approved' } },
    ]);
  });

  test('is by no change of a peer: not by a member, and not by what resumes a suspended peer', async () => {
    const { id } = await join();
    for (const role of ['owner', 'member'] as const) {
      const reply = await call('PATCH', `/peers/${id}`, { suspended: false }, await on.plane.signIn(role));
      expect([reply.status, reply.body.errors]).toEqual([
        422,
        { suspended: [expect.stringContaining('cpn peer approve')] },
      ]);
    }
    await call('PATCH', `/peers/${id}`, { suspended: true });
    expect((await approve(id)).status).toBe(200);
  });

  test('resumes no suspended peer, and a suspended one that is resumed needs none', async () => {
    await call('PATCH', `/peers/${edge.id}`, { suspended: true });
    expect((await approve(edge.id)).body.data).toHaveProperty('suspended_at');
    expect((await map()).peers).toEqual([]);
    await call('PATCH', `/peers/${edge.id}`, { suspended: false });
    expect(names((await map()).peers)).toEqual(['edge']);
  });

  test('of a peer that has expired needs a later end first', async () => {
    key = await makeKey(on.plane, on.token, network, { peer_expires_in_hours: 1 });
    const { id, token } = await join();
    on.plane.clock.advance(2 * hour);
    expect((await approve(id)).status).toBe(409);
    const refused = await call('GET', '', undefined, token);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('expired')]);
    await call('PATCH', `/peers/${id}`, { expires_at: null });
    expect((await approve(id)).status).toBe(200);
  });

  test('lasts: a new key pair, and an enrolment with the proven identity, need no other; a new identity does', async () => {
    const identity = newIdentity();
    const { id, token } = await prove(identity);
    await approve(id);
    const rotated = await call('PATCH', `/peers/${id}`, { public_key: publicKey() }, token);
    expect([rotated.status, rotated.body.data.awaiting_approval]).toEqual([200, undefined]);
    const again = await prove(identity, { serial: 2 });
    expect([again.id, names(again.network.peers)]).toEqual([id, ['edge', 'laptop']]);
    const other = await prove(newIdentity());
    expect([other.peer.name, names(other.network.peers)]).toEqual(['laptop-2', ['laptop-2']]);
    await call('DELETE', `/peers/${id}`);
    expect((await prove(identity, { serial: 3 })).peer).toHaveProperty('awaiting_approval');
  });

  test('cannot be passed by a member with the key of an approved peer', async () => {
    const member = await on.plane.signIn('member');
    const body = { public_key: publicKey() };
    const refused = await call('PATCH', `/peers/${edge.id}`, body, member);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('ask an owner or admin')]);
    expect((await call('PATCH', `/peers/${edge.id}`, { name: 'edge-1' }, member)).status).toBe(200);
    expect((await call('PATCH', `/peers/${edge.id}`, body)).status).toBe(200);
    await setApproval('off');
    expect((await call('PATCH', `/peers/${edge.id}`, { public_key: publicKey() }, member)).status).toBe(200);
  });

  test('makes a connector a newcomer among those that serve', async () => {
    const waiting = await join({ peer_type: 'connector', name: 'spare' });
    on.plane.clock.advance(60_000);
    const { body } = await approve(waiting.id);
    expect(body.data.serving_since).toBe(on.plane.clock.now().toISOString());
  });

  test('ends where a restored database lets an approved peer wait again: it reads no peers', async () => {
    const { id, token } = await join();
    await approve(id);
    expect(names((await map(token)).peers)).toEqual(['edge', 'laptop']);
    const at = on.plane.clock.now().toISOString();
    await withDatabase(on.plane.dataDir, (db) =>
      db.updateTable('peers').set({ suspended_at: at, awaiting_approval: at }).where('id', '=', id).execute(),
    );
    await call('PATCH', `/peers/${id}`, { name: 'laptop-1' });
    for (let left = 3; left > 0; left -= 1) {
      const { status, body } = await call('GET', '', undefined, token);
      expect([403, 200]).toContain(status);
      if (status === 200 && body.data.revision === 0) break;
    }
    expect(names((await map(token)).peers)).toEqual(['laptop-1']);
  });
});

describe('an own device that waits', () => {
  const password = 'a long enough password';
  let ann: { id: number; email: string; token: string };
  let users = 0;
  beforeEach(async () => {
    // To create a user takes a recent login.
    on = { ...on, token: await logIn(owner) };
    await call('PATCH', '', { self_enroll: { roles: ['member', 'viewer'], limit: 1, reauth_hours: 24 } });
    const email = `ann-${++users}@example.net`;
    const body = { email, password, role: 'viewer' };
    const { data } = (await on.plane.call('POST', '/api/users', { token: on.token, body })).body;
    ann = { id: data.id, email, token: await logIn({ email }) };
  });

  const logIn = async (user: { email: string; password?: string }) =>
    (await on.plane.call('POST', '/api/auth/login', { body: { password, ...user } })).body.data.access_token;
  const mint = () => call('POST', '/own-devices', {}, ann.token);
  const own = async () => (await on.plane.call('GET', '/api/auth/devices', { token: ann.token })).body.data;
  const joinOwn = async () => {
    key = (await mint()).body.data.enrollment_token;
    return join({ peer_type: 'admin_device' });
  };
  const setRole = (role: string) =>
    on.plane.call('PATCH', `/api/users/${ann.id}`, {
      token: on.token,
      body: { role, current_password: owner.password },
    });

  test('is in no map until an admin approves it, and counts for the limit of its user', async () => {
    const { id, token, peer } = await joinOwn();
    expect(peer).toMatchObject({ awaiting_approval: expect.any(String), reauth_hours: 24 });
    expect(names((await map(edge.token)).peers)).toEqual(['edge']);
    expect((await mint()).body.message).toContain('as many own devices in network office as it allows, 1');
    const [event] = await listed('/events', 'peer.awaiting_approval');
    expect(event).toMatchObject({ peer: { id }, details: { user: ann.email } });
    expect((await approve(id)).status).toBe(200);
    expect(names((await map(token)).peers)).toEqual(['edge', 'laptop']);
    expect(await own()).toMatchObject([{ id, state: 'active' }]);
  });

  test('is listed for its user, who removes it', async () => {
    const { id, token } = await joinOwn();
    expect(await own()).toMatchObject([{ id, state: 'waiting' }]);
    expect((await approve(id, ann.token)).status).toBe(403);
    expect((await on.plane.call('DELETE', `/api/auth/devices/${id}`, { token: ann.token })).status).toBe(200);
    expect((await call('GET', '', undefined, token)).status).toBe(401);
    expect(await own()).toEqual([]);
    expect((await mint()).status).toBe(201);
  });

  test('is not let in by a login of its user, which moves its end alone', async () => {
    const { id, token } = await joinOwn();
    on.plane.clock.advance(25 * hour);
    on = { ...on, token: await logIn(owner) };
    expect((await call('GET', '', undefined, token)).body.message).toContain('once its user logs in');
    const early = await approve(id);
    expect([early.status, early.body.message]).toEqual([409, expect.stringContaining('its user logs in, and you')]);
    ann.token = await logIn({ email: ann.email });
    const end = new Date(on.plane.clock.now().getTime() + 24 * hour).toISOString();
    expect(await own()).toMatchObject([{ id, state: 'waiting', expires_at: end }]);
    expect(names((await map(token)).peers)).toEqual(['laptop']);
    expect(names((await map(edge.token)).peers)).toEqual(['edge']);
    expect((await approve(id)).status).toBe(200);
    expect(names((await map(token)).peers)).toEqual(['edge', 'laptop']);
  });

  test.each([
    ['its user is removed', () => on.plane.call('DELETE', `/api/users/${ann.id}`, { token: on.token }), 'user removed'],
    ['its user loses the role', () => setRole('admin'), 'role changed'],
  ])('is removed when %s, so that no approval or return lets it in', async (_when, lose, because) => {
    const { id, token, peer } = await joinOwn();
    const { revision } = await map();
    expect((await lose()).status).toBe(200);
    expect((await approve(id)).status).toBe(404);
    if (because === 'role changed') await setRole('viewer');
    expect((await call('GET', '', undefined, token)).status).toBe(401);
    expect(await map()).toMatchObject({ revision, peers: [{ name: 'edge' }] });
    expect((await listed('/audit', 'peer.delete'))[0]).toMatchObject({
      target: { id, name: 'laptop' },
      details: { network, address: peer.address, user: ann.email, because },
    });
    expect(await listed('/events', 'peer.removed')).toMatchObject([
      { peer: { id }, details: { reason: 'not_approved' } },
    ]);
  });

  test('of a user with an approved one too is removed, and the approved one is suspended', async () => {
    await call('PATCH', '', { self_enroll: { roles: ['viewer'], limit: 2, reauth_hours: null } });
    const kept = await joinOwn();
    await approve(kept.id);
    const { id } = await joinOwn();
    await on.plane.call('DELETE', `/api/users/${ann.id}`, { token: on.token });
    expect((await call('GET', `/peers/${id}`)).status).toBe(404);
    expect((await approve(kept.id)).body.data).toHaveProperty('suspended_at');
    expect(names((await map()).peers)).toEqual(['edge']);
  });
});

describe('a network with approval', () => {
  test('is set by owners and admins alone, states it, and records it', async () => {
    for (const role of ['member', 'viewer'] as const)
      expect([role, (await setApproval('off', await on.plane.signIn(role))).status]).toEqual([role, 403]);
    expect((await map()).approval).toBe('required');
    const { body } = await setApproval('off', await on.plane.signIn('admin'));
    expect(body.data).not.toHaveProperty('approval');
    expect((await listed('/audit', 'network.update'))[0].details).toEqual({ approval: 'off' });
    expect((await call('PATCH', '', { approval: 'sometimes' })).status).toBe(422);
  });

  test('keeps its peers, and without it new peers enter at once; those that wait still wait', async () => {
    expect(names((await map(edge.token)).peers)).toEqual(['edge']);
    const { id, token } = await join({ name: 'waits' });
    await setApproval('off');
    const { network: whole } = await join({ name: 'enters' });
    expect(names(whole.peers)).toEqual(['edge', 'enters']);
    expect(names((await map(token)).peers)).toEqual(['waits']);
    await approve(id);
    expect(names((await map()).peers).sort()).toEqual(['edge', 'enters', 'waits']);
  });

  test.each([
    ['10.77.0.0/24', 63],
    ['10.78.0.0/29', 1],
  ])('%s lets %i peers wait, and a refused enrolment takes no use of its key', async (private_cidr, most) => {
    network = await makeNetwork(on.plane, on.token, { private_cidr, name: `n${most}` });
    await setApproval('required');
    const keys: string[] = [];
    for (let left = most + 1; left > 0; left -= 10) keys.push(await makeKey(on.plane, on.token, network));
    const enrolments = Array.from({ length: most }, (_, at) =>
      enroll(on.plane, keys[Math.floor(at / 10)] ?? '', { name: `h${at}` }),
    );
    const waiting = (await Promise.all(enrolments)).map(of);
    key = await makeKey(on.plane, on.token, network, { max_uses: 1 });
    const refused = await enroll(on.plane, key);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining(`of which it has ${most}`)]);
    await call('DELETE', `/peers/${waiting[0]?.id}`);
    await join();
    expect(waiting).toHaveLength(most);
  });
});
