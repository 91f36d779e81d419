import { expect, test } from 'vitest';
import { freshLoginMs } from '../../../src/control-plane/domain/tokens.ts';
import { eventually } from '../../lab/eventually.ts';
import { enroll, hour, makeFolder, makeKey, makeNetwork, startPlane, withDatabase } from '../harness.ts';
import { actions, silence, soon, startOffice } from './office.ts';

/** By how much the clock was ahead. */
const ahead = 5 * hour;

test('a host that dies after the clock was set back is offline as soon as any other', async () => {
  const { one, two, plane, call, events, stateOf, health } = await startOffice();
  await call(one);
  await call(two);
  await eventually('both are announced', async () => (await events()).length === 2);
  plane.clock.setBack(ahead);
  await eventually('what is stored is clamped', async () => {
    const now = plane.clock.now().toISOString();
    return (await health()).peers.every(({ last_seen }) => last_seen === null || last_seen <= now);
  });
  plane.clock.advance(silence - 30_000);
  await call(two);
  expect(await stateOf(one)).toBe('online');
  plane.clock.advance(30_000);
  await eventually('one is offline', async () => (await events()).includes('peer.offline one'));
  expect(await events()).not.toContain('peer.offline two');
});

test('so is one that was dead before, across a restart, and its last request is not in the future', async () => {
  const dataDir = makeFolder();
  const office = await startOffice({ dataDir });
  const { one, two, plane, network, token } = office;
  await office.call(one);
  await office.call(two);
  await eventually('both are announced', async () => (await office.events()).length === 2);
  await plane.server.close();
  let at = new Date(plane.clock.now().getTime() - ahead);
  const again = await startPlane({ dataDir, healthTimes: soon, now: () => at });
  const after = actions(again, network, token);
  const lastSeen = async () =>
    (await after.health()).peers.map((peer) => peer.last_seen).filter((seen) => seen !== null);
  await eventually('what is stored is clamped', async () =>
    (await lastSeen()).every((seen) => seen <= at.toISOString()),
  );
  at = new Date(at.getTime() + silence - 20_000);
  await after.call(two);
  await eventually('the request is stored', async () => (await lastSeen()).includes(at.toISOString()));
  at = new Date(at.getTime() + 20_000);
  await eventually('one is offline', async () => (await after.events()).includes('peer.offline one'));
  expect(await after.events()).not.toContain('peer.offline two');
});

test('a peer that used up its changes may make the next one after a minute, whatever the clock shows', async () => {
  const plane = await startPlane({ limits: { peerChanges: 1 } });
  const owner = await plane.signIn('owner');
  const network = await makeNetwork(plane, owner);
  const { peer, access_token: token } = (await enroll(plane, await makeKey(plane, owner, network))).body.data;
  const rename = (name: string) =>
    plane.call('PATCH', `/api/networks/${network}/peers/${peer.id}`, { token, body: { name } });
  expect((await rename('first')).status).toBe(200);
  plane.clock.setBack(ahead);
  const refused = await rename('second');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
  plane.clock.advance(60_000);
  expect((await rename('second')).status).toBe(200);
});

test('a key, a token and a session live no longer than they were made for, and a webhook is tried now', async () => {
  const plane = await startPlane({ healthTimes: soon });
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  await makeKey(plane, token, network, { expires_in_hours: 2 });
  await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci', expires_in_days: 1 } });
  const made = plane.clock.now();
  await withDatabase(plane.dataDir, async (db) => {
    const event = { event_id: 1, body: '{}', created_at: made.toISOString() };
    const later = new Date(made.getTime() + 60_000).toISOString();
    await db
      .insertInto('deliveries')
      .values([
        { ...event, attempts: 0, next_at: event.created_at },
        { ...event, attempts: 3, next_at: later },
      ])
      .execute();
  });
  plane.clock.setBack(ahead);
  const now = plane.clock.now();
  const inHours = (hours: number) => new Date(now.getTime() + hours * hour).toISOString();
  const rows = async () => {
    const read = (table: 'enrollment_keys' | 'personal_tokens' | 'sessions') =>
      withDatabase(plane.dataDir, (db) => db.selectFrom(table).select(['created_at', 'expires_at']).execute());
    return {
      keys: await read('enrollment_keys'),
      tokens: await read('personal_tokens'),
      sessions: await read('sessions'),
    };
  };
  await eventually('they are clamped', async () =>
    (await rows()).keys.every(({ created_at }) => created_at <= now.toISOString()),
  );
  const clamped = { created_at: now.toISOString() };
  expect(await rows()).toEqual({
    keys: [{ ...clamped, expires_at: inHours(2) }],
    tokens: [{ ...clamped, expires_at: inHours(24) }],
    // A login of unknown age proves no password.
    sessions: [{ created_at: new Date(now.getTime() - freshLoginMs - 1).toISOString(), expires_at: inHours(24) }],
  });
  const due = await withDatabase(plane.dataDir, (db) => db.selectFrom('deliveries').select('next_at').execute());
  expect(due.map(({ next_at }) => next_at)).toEqual([now.toISOString(), now.toISOString()]);
});

test('a connector that enrolled before keeps its rank before one that enrols after', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24'] });
  const add = async (name: string) => {
    const reply = await enroll(plane, await makeKey(plane, token, network), { name, peer_type: 'connector' });
    return reply.body.data.peer;
  };
  const first = await add('first');
  plane.clock.setBack(ahead);
  const second = await add('second');
  expect(second.serving_since > first.serving_since).toBe(true);
  const path = (id: number) => `/api/networks/${network}/peers/${id}`;
  const withdraw = (id: number, withdrawn: string[]) => plane.call('PATCH', path(id), { token, body: { withdrawn } });
  await withdraw(first.id, ['192.168.1.0/24']);
  const back = (await withdraw(first.id, [])).body.data;
  expect(back.serving_since > second.serving_since).toBe(true);
});

test('what a clock of another day counted does not use up the limits of today', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const make = () => plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } });
  expect((await make()).status).toBe(201);
  await withDatabase(plane.dataDir, async (db) => {
    const [entry] = await db.selectFrom('audit_entries').selectAll().where('action', '=', 'token.create').execute();
    if (entry === undefined) return expect.unreachable();
    const { id: _, ...copy } = entry;
    const tomorrow = Array.from({ length: 200 }, () => ({ ...copy, at: '2030-01-02T01:00:00.000Z' }));
    await db.insertInto('audit_entries').values(tomorrow).execute();
  });
  expect((await make()).status).toBe(201);
});
