import { describe, expect, test, vi } from 'vitest';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { createPeerChangeLimit } from '../../../src/control-plane/service/peer-change-limit.ts';
import { enroll, makeKey, makeNetwork, publicKey, startPlane, withDatabase } from '../harness.ts';

const minute = 60_000;
const [one, two] = ['192.168.1.0/24', '192.168.2.0/24'];

async function startOffice(limits: { peerChanges?: number } = {}) {
  const notifier = new ChangeNotifier();
  const plane = await startPlane({ notifier, limits });
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token, { routes: [one, two] });
  const key = await makeKey(plane, token, network);
  const { peer, access_token: own } = (await enroll(plane, key, { peer_type: 'connector' })).body.data;
  const wake = vi.spyOn(notifier, 'notify');
  const change = (body: object, as: string = own) =>
    plane.call('PATCH', `/api/networks/${network}/peers/${peer.id}`, { token: as, body });
  const rename = async (count: number, from = 0) => {
    const statuses = [];
    for (let index = from; index < from + count; index += 1) {
      statuses.push((await change({ name: `n${index}` })).status);
    }
    return statuses;
  };
  const audit = async () =>
    (await plane.call('GET', '/api/audit?limit=200', { token: await plane.signIn('owner') })).body.data;
  const ofPeer = async () =>
    (await audit()).filter((entry: { actor: { kind: string } }) => entry.actor.kind === 'peer');
  return { plane, token, network, key, peer, own, wake, change, rename, ofPeer };
}

describe('a peer that renames itself again and again', () => {
  test('is refused after 30, with the seconds until the next one, and wakes and writes no more', async () => {
    const { plane, token, change, rename, wake, ofPeer } = await startOffice();
    expect(new Set(await rename(30))).toEqual(new Set([200]));
    const woken = wake.mock.calls.length;
    expect(new Set(await rename(20, 30))).toEqual(new Set([429]));
    const refused = await change({ name: 'again' });
    expect([refused.headers.get('retry-after'), refused.body.message]).toEqual([
      '60',
      'too many changes of this peer by itself; try again in 60 s',
    ]);
    expect([wake.mock.calls.length, (await ofPeer()).length]).toEqual([woken, 30]);
    // What changes nothing is no change, and what others change of it does not count.
    expect((await change({ name: 'n29' })).status).toBe(200);
    expect((await change({ name: 'by an admin' }, token)).status).toBe(200);
    expect((await change({ endpoint: 'nowhere' })).status).toBe(422);
    plane.clock.advance(minute);
    expect(await rename(2, 2000)).toEqual([200, 429]);
  });

  test('is limited by itself: another peer is not', async () => {
    const { plane, network, key, rename } = await startOffice({ peerChanges: 1 });
    expect(await rename(2)).toEqual([200, 429]);
    const other = (await enroll(plane, key)).body.data;
    const path = `/api/networks/${network}/peers/${other.peer.id}`;
    const reply = await plane.call('PATCH', path, { token: other.access_token, body: { name: 'free' } });
    expect(reply.status).toBe(200);
  });

  test('has a hundred entries a day in the audit at the most; the last of them says that there was more', async () => {
    const { plane, rename, ofPeer } = await startOffice();
    await rename(1);
    // As if it had done that 97 times more.
    await withDatabase(plane.dataDir, async (db) => {
      const row = await db.selectFrom('audit_entries').selectAll().orderBy('id', 'desc').executeTakeFirstOrThrow();
      const { id: _, ...entry } = row;
      await db
        .insertInto('audit_entries')
        .values(Array.from({ length: 97 }, () => entry))
        .execute();
    });
    await rename(4, 1);
    const entries = await ofPeer();
    expect([entries.length, entries[0].details, entries[1].details.name]).toEqual([
      100,
      { left_out: 'more that this peer did on 2030-01-01' },
      'n1',
    ]);
    plane.clock.advance(24 * 60 * minute);
    await rename(1, 500);
    expect((await ofPeer()).length).toBe(101);
  });
});

test('a key that a peer takes is in the audit, whatever else it did that day, and takes no room from the rest', async () => {
  const { plane, change } = await startOffice();
  const keys = [publicKey(), publicKey()];
  const entries = () =>
    withDatabase(plane.dataDir, async (db) => {
      const rows = await db
        .selectFrom('audit_entries')
        .selectAll()
        .where('actor_kind', '=', 'peer')
        .orderBy('id')
        .execute();
      return rows.map(({ id: _, ...row }) => row);
    });
  const details = async () => (await entries()).map((row) => JSON.parse(row.details));
  /** As if it had done the last thing that many times more. */
  const repeat = async (count: number) => {
    const last = (await entries()).at(-1);
    if (!last) throw new Error('it did nothing');
    const copies = Array.from({ length: count }, () => last);
    await withDatabase(plane.dataDir, (db) => db.insertInto('audit_entries').values(copies).execute());
  };
  await change({ public_key: keys[0] });
  await repeat(110);
  // A name that reads like the field is none.
  await change({ name: '"public_key":' });
  expect((await details()).at(-1).name).toBe('"public_key":');
  await repeat(98);
  await change({ name: 'left out' });
  await change({ name: 'left out too' });
  const leftOut = { left_out: 'more that this peer did on 2030-01-01' };
  expect((await details()).slice(-1)).toEqual([leftOut]);
  expect((await change({ public_key: keys[1] })).status).toBe(200);
  await change({ name: 'left out again' });
  expect(await details()).toHaveLength(111 + 99 + 1 + 1);
  expect((await details()).slice(-2)).toMatchObject([leftOut, { public_key: keys[1] }]);
});

describe('a connector that withdraws', () => {
  test('is never refused, but putting back counts, and so does the withdrawing as far as it can', async () => {
    const { change } = await startOffice({ peerChanges: 2 });
    const statuses = [];
    for (const withdrawn of [[one], [], [one], [], [one, two], [], [two, one]]) {
      statuses.push((await change({ withdrawn })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429, 200, 429, 200]);
    // Together with something else it is a change like others.
    expect((await change({ withdrawn: [one, two, '10.77.0.0/24'], name: 'gw' })).status).toBe(429);
  });

  test('a repeated change notifies no connector and writes nothing', async () => {
    const { change, wake, ofPeer } = await startOffice();
    await change({ withdrawn: [one] });
    const before = [wake.mock.calls.length, (await ofPeer()).length];
    for (let time = 0; time < 10; time += 1) expect((await change({ withdrawn: [one] })).status).toBe(200);
    expect([wake.mock.calls.length, (await ofPeer()).length]).toEqual(before);
  });

  test('again and again hides no other change from the audit', async () => {
    const { plane, change, rename, ofPeer } = await startOffice({ peerChanges: 1000 });
    await change({ withdrawn: [one] });
    // As if it had done that 97 times more.
    await withDatabase(plane.dataDir, async (db) => {
      const row = await db.selectFrom('audit_entries').selectAll().orderBy('id', 'desc').executeTakeFirstOrThrow();
      const { id: _, ...entry } = row;
      await db
        .insertInto('audit_entries')
        .values(Array.from({ length: 97 }, () => entry))
        .execute();
    });
    for (const withdrawn of [[], [one], []]) await change({ withdrawn });
    await rename(1);
    const entries = (await ofPeer()).map(({ details }: { details: object }) => details);
    expect(entries).toHaveLength(101);
    expect(entries.slice(0, 3)).toEqual([
      expect.objectContaining({ name: 'n0' }),
      { withdrawn: null, left_out: 'more that this peer did on 2030-01-01' },
      expect.objectContaining({ withdrawn: [] }),
    ]);
  });
});

test('what peers took is forgotten once they have it back', () => {
  let at = 0;
  const changes = createPeerChangeLimit(1, () => at);
  for (let peer = 0; peer < 20_000; peer += 1) changes.take(peer, false);
  expect(() => changes.take(1, false)).toThrow(/60 s/);
  at = minute;
  for (let peer = 0; peer < 20_000; peer += 1) changes.take(peer, false);
});
