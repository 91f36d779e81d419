import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Role } from '../../../src/contract/auth.ts';
import { enroll, makeFolder, makeKey, makeNetwork, openPlane, withDatabase } from '../harness.ts';
import { changed, long, openWaiting, outcome, read, untilWaiting, type Waiting } from '../push/long-poll.ts';

interface Enrolled {
  readonly id: number;
  readonly token: string;
}

const range = '10.77.0.0/24';
const one = '192.168.1.0/24';
const two = '192.168.2.0/24';

let on: Waiting;
let network: number;
let connector: Enrolled;
let other: Enrolled;
let origin: Enrolled;

beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => on.plane.server.close());
beforeEach(async () => {
  network = await makeNetwork(on.plane, on.token, { routes: [one, two] });
  const key = await makeKey(on.plane, on.token, network);
  const join = async (peer_type: string): Promise<Enrolled> => {
    const { data } = (await enroll(on.plane, key, { peer_type })).body;
    return { id: data.peer.id, token: data.access_token };
  };
  connector = await join('connector');
  other = await join('connector');
  origin = await join('origin');
});

const path = (peer: Enrolled) => `/api/networks/${network}/peers/${peer.id}`;
const change = (peer: Enrolled, body: object, token: string) => on.plane.call('PATCH', path(peer), { token, body });
const withdraw = (withdrawn: readonly string[], token = connector.token) => change(connector, { withdrawn }, token);
const admin = (body: object) => change(connector, body, on.token);
const shown = async () => {
  const { body } = await on.plane.call('GET', `/api/networks/${network}`, { token: on.token });
  const { routes, withdrawn } = body.data.peers[0];
  return { revision: body.data.revision, routes, withdrawn };
};

describe('a connector by its own token', () => {
  test('withdraws a route: the rest is what it serves, and it gets all of it back', async () => {
    const reply = await withdraw([one]);
    expect([reply.status, reply.body.data.routes, reply.body.data.withdrawn]).toEqual([200, [two], [one]]);
    expect(await shown()).toEqual({ revision: 5, routes: [two], withdrawn: [one] });
    expect((await withdraw([two])).body.data).toMatchObject({ routes: [one], withdrawn: [two] });
    const back = (await withdraw([])).body.data;
    expect([Object.hasOwn(back, 'routes'), Object.hasOwn(back, 'withdrawn')]).toEqual([false, false]);
  });

  test('withdraws its relaying, which leaves its routes alone', async () => {
    expect((await withdraw([range])).body.data).toMatchObject({ routes: [one, two], withdrawn: [range] });
  });

  test('that withdraws the same again, in whatever order, makes no revision', async () => {
    await withdraw([two, range, one]);
    const before = await shown();
    expect(before).toEqual({ revision: 5, routes: [], withdrawn: [range, one, two] });
    await withdraw([one, two, range, one]);
    expect(await shown()).toEqual(before);
  });

  test('may not set its routes in the same request, which then withdraws nothing', async () => {
    expect((await change(connector, { withdrawn: [one], routes: [two] }, connector.token)).status).toBe(403);
    expect(await shown()).toMatchObject({ revision: 4 });
  });
});

describe('what is withdrawn', () => {
  test('never gives a connector more than it is there to serve', async () => {
    await admin({ routes: [one] });
    expect((await withdraw([two])).body.data).toMatchObject({ routes: [one] });
    expect(await shown()).toEqual({ revision: 6, routes: [one], withdrawn: undefined });
    await withdraw([one, two]);
    expect(await shown()).toMatchObject({ routes: [], withdrawn: [one] });
    await withdraw([]);
    expect(await shown()).toEqual({ revision: 8, routes: [one], withdrawn: undefined });
  });

  test('outlasts what an admin assigns meanwhile', async () => {
    await withdraw([one]);
    expect((await admin({ routes: [one, two] })).body.data).toMatchObject({ routes: [two], withdrawn: [one] });
    expect((await admin({ routes: null })).body.data).toMatchObject({ routes: [two], withdrawn: [one] });
    await withdraw([]);
    expect(await shown()).toMatchObject({ routes: undefined, withdrawn: undefined });
  });

  test('is not shown of a route that the network no longer has, and still is out of service when that comes back', async () => {
    await withdraw([one, range]);
    const setRoutes = (routes: readonly string[]) =>
      on.plane.call('PATCH', `/api/networks/${network}`, { token: on.token, body: { routes } });
    await setRoutes([two]);
    expect(await shown()).toMatchObject({ routes: [two], withdrawn: [range] });
    await setRoutes([two, one]);
    expect(await shown()).toMatchObject({ routes: [two], withdrawn: [one, range].toSorted() });
  });

  test.each([
    ['a prefix that is none of the network', ['192.168.3.0/24']],
    ['a part of a route', ['192.168.1.0/25']],
    ['host bits', ['192.168.1.1/24']],
    ['a word', ['all']],
    ['more than there can be', Array.from({ length: 52 }, () => one)],
  ])('is refused for %s, and nothing is withdrawn', async (_, withdrawn) => {
    const reply = await withdraw([one, ...withdrawn].slice(-52));
    expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['withdrawn']]);
    expect(await shown()).toMatchObject({ revision: 4, withdrawn: undefined });
  });

  test.each([[[]], [[one]]])('is for connectors only: %j', async (withdrawn) => {
    for (const token of [origin.token, on.token]) {
      const reply = await change(origin, { withdrawn }, token);
      expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['withdrawn']]);
    }
  });

  test('is news to those who wait', async () => {
    const waiting = read(on, network, 4, long, origin.token);
    await untilWaiting(on, network);
    await withdraw([one]);
    expect(outcome(await waiting)).toEqual(changed(5));
  });
});

describe('withdrawing', () => {
  test.each<[Role, number]>([
    ['owner', 200],
    ['admin', 200],
    ['member', 200],
    ['viewer', 403],
  ])('by an %s is answered with %i', async (role, status) => {
    expect((await withdraw([one], await on.plane.signIn(role))).status).toBe(status);
    expect((await shown()).withdrawn).toEqual(status === 200 ? [one] : undefined);
  });

  test('for another peer is refused, for any caller', async () => {
    for (const { token } of [other, origin]) expect((await withdraw([one], token)).status).toBe(403);
    const foreign = await on.plane.signIn('owner', await on.plane.addOrganization('other'));
    expect((await withdraw([one], foreign)).status).toBe(404);
    expect(await shown()).toMatchObject({ revision: 4, withdrawn: undefined });
  });
});

test('the peers of a database from before can withdraw too', async () => {
  const dataDir = makeFolder();
  const first = await openPlane({ dataDir });
  const token = await first.signIn('owner');
  const id = await makeNetwork(first, token, { routes: [one] });
  const enrolled = (await enroll(first, await makeKey(first, token, id), { peer_type: 'connector' })).body.data;
  await first.server.close();
  await withDatabase(dataDir, async (db) => {
    // What later versions brought, newest first.
    const tables = [
      'applied_migrations',
      ...['network_rules', 'deleted_peers', 'deleted_networks', 'peer_traffic'],
      ...['deliveries', 'events', 'peer_health', 'network_health', 'peer_messages'],
      'former_identities',
      'write_checks',
      'peer_endpoints',
      'peer_pairs',
      'known_prefixes',
      ...['second_factors', 'recovery_codes', 'factor_challenges', 'device_codes'],
      'path_starts',
      ...['audit_chains', 'audit_pruned', 'audit_positions', 'audit_receivers'],
      'former_labels',
      ...['issuer_sessions', 'identities', 'login_attempts'],
      'changes',
      'audit_entries',
      'personal_tokens',
    ];
    for (const table of tables) await db.schema.dropTable(table).execute();
    const indexes = ['peers_expires_at', 'peers_identity_key', 'peers_previous_key', 'peers_label', 'peers_connectors'];
    indexes.push('peers_awaiting', 'peers_user_id', 'enrollment_keys_user_id');
    for (const index of indexes) await db.schema.dropIndex(index).execute();
    await db.schema.alterTable('users').dropColumn('reset_at').execute();
    for (const column of ['address', 'last_used_at', 'proven_at'])
      await db.schema.alterTable('sessions').dropColumn(column).execute();
    for (const column of [
      'nonce',
      'map_max_age_seconds',
      'lasting_nonce',
      'relay',
      'spread',
      'route_dns',
      'self_enroll',
      'approval',
    ])
      await db.schema.alterTable('networks').dropColumn(column).execute();
    for (const column of ['peer_hours', 'peer_types', 'routes', 'tags', 'user_id'])
      await db.schema.alterTable('enrollment_keys').dropColumn(column).execute();
    for (const column of [
      'suspended_at',
      'awaiting_approval',
      'expires_at',
      'expired',
      'previous_key',
      'label',
      'priority',
      'serving_since',
      'identity_key',
      'key_proof',
      'network_secret_tag',
      'profile',
      'follows_relay',
      'masquerades',
      'tags',
      'enforces_rules',
      'reauth_hours',
      'user_id',
      'user_email',
      'withdrawn',
    ]) {
      await db.schema.alterTable('peers').dropColumn(column).execute();
    }
    await db.schema.alterTable('users').dropColumn('networks').execute();
    await sql`delete from kysely_migration where name >= '0002-withdrawn'`.execute(db);
  });
  const later = await openPlane({ dataDir });
  try {
    const asked = { token: enrolled.access_token, body: { withdrawn: [one] } };
    const reply = await later.call('PATCH', `/api/networks/${id}/peers/${enrolled.peer.id}`, asked);
    expect([reply.status, reply.body.data.withdrawn]).toEqual([200, [one]]);
  } finally {
    await later.server.close();
  }
});
