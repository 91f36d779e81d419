import { expect, test } from 'vitest';
import { RemovalStatus } from '../../../src/contract/removal.ts';
import { Refusal } from '../../../src/contract/reply.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { pruneAudit } from '../../../src/control-plane/service/retention.ts';
import { eventually } from '../../lab/eventually.ts';
import { hour, withDatabase } from '../harness.ts';
import { type OfficePeer, startOffice } from '../health/office.ts';

/** An office, and the requests of its hosts and its owner about a deletion. */
async function start() {
  const notifier = new ChangeNotifier();
  const office = await startOffice({ notifier });
  const { plane, network, token, one, two } = office;
  const path = `/api/networks/${network}`;
  const read = (peer: Pick<OfficePeer, 'token'>, deletion?: string, more: Record<string, string> = {}) =>
    plane.call('GET', path, {
      token: peer.token,
      headers: { 'user-agent': 'cpn/9.9.9', ...(deletion && { 'network-deletion': deletion }), ...more },
    });
  for (const peer of [one, two]) {
    await read(peer, 'follow');
    await office.untilState(peer, 'online');
  }
  const { nonce, etag } = (await plane.call('GET', path, { token })).body.data;
  return {
    ...{ ...office, notifier, path, nonce, etag, read },
    remove: () => plane.call('DELETE', path, { token }),
    removals: async () => RemovalStatus.parse((await plane.call('GET', `${path}/removals`, { token })).body.data),
  };
}

test('the nonce of a network stays through its revisions', async () => {
  const { plane, path, token, nonce, one, read } = await start();
  expect(nonce).toMatch(/^\S{8,}$/);
  await plane.call('PATCH', path, { token, body: { description: 'changed' } });
  expect((await read(one)).body.data.nonce).toBe(nonce);
});

test('a host of a deleted network gets a 410 with its id and nonce, at once where it waits, and no other caller does', async () => {
  const { one, two, stranger, network, nonce, etag, read, remove, plane, path, token, notifier } = await start();
  const waiting = read(two, 'follow', { 'if-none-match': etag, prefer: 'wait=30' });
  const older = read(two, undefined, { 'if-none-match': etag, prefer: 'wait=30' });
  await eventually('both wait', async () => notifier.count(network) === 2);
  expect((await remove()).status).toBe(200);
  for (const reply of [await waiting, await read(one, 'follow'), await read(one, 'applied')]) {
    expect(reply.status).toBe(410);
    expect(Refusal.parse(reply.body).deleted).toEqual({ id: network, nonce });
    expect(reply.headers.get('cache-control')).toBe('no-store');
  }
  expect([401, 404]).toContain((await older).status);
  expect((await read(one)).status).toBe(401);
  expect((await read(stranger, 'follow')).status).toBe(404);
  expect((await read({ token: 'cpp_unknown' }, 'follow')).status).toBe(401);
  const other = await plane.call('GET', '/api/networks/999', {
    token: one.token,
    headers: { 'network-deletion': 'follow' },
  });
  expect(other.status).toBe(401);
  expect((await plane.call('GET', path, { token, headers: { 'network-deletion': 'follow' } })).status).toBe(404);
  expect((await plane.call('DELETE', `${path}/peers/${one.id}`, { token: one.token })).status).toBe(401);
});

test('the hosts are listed that have not taken it, with those whose version never will', async () => {
  const { one, two, read, remove, removals, plane, path } = await start();
  await remove();
  const { pending, deleted_at } = await removals();
  expect(deleted_at).toBe(plane.clock.now().toISOString());
  // The third peer never made a request.
  expect(pending).toMatchObject([
    { id: one.id, name: 'one', version: '9.9.9', deletion: null },
    { id: two.id, name: 'two', version: '9.9.9', deletion: null },
  ]);
  await read(one, 'follow');
  await read(two);
  expect((await removals()).pending).toMatchObject([{ deletion: 'stated' }, { deletion: 'unsupported' }]);
  plane.clock.advance(30_000);
  await read(one, 'follow');
  expect((await removals()).pending[0]?.last_seen).toBe(plane.clock.now().toISOString());
  await read(one, 'applied');
  expect((await removals()).pending).toMatchObject([{ name: 'two', deletion: 'unsupported' }]);
  const stranger = await plane.signIn('owner', await plane.addOrganization('other'));
  expect((await plane.call('GET', `${path}/removals`, { token: stranger })).status).toBe(404);
});

test('a deletion is forgotten after 90 days', async () => {
  const { one, read, remove, removals, plane } = await start();
  await remove();
  const prune = () =>
    withDatabase(plane.dataDir, (db) => pruneAudit({ db, readTime: async () => plane.clock.now() }, { days: 365 }));
  plane.clock.advance(89 * 24 * hour);
  await prune();
  expect((await read(one, 'follow')).status).toBe(410);
  plane.clock.advance(2 * 24 * hour);
  await prune();
  expect((await read(one, 'follow')).status).toBe(401);
  await expect(removals()).rejects.toThrow();
});

test('a network that an earlier version made has a nonce by its next revision', async () => {
  const { one, read, remove, plane, path, token, network } = await start();
  const set = { lasting_nonce: null };
  await withDatabase(plane.dataDir, (db) => db.updateTable('networks').set(set).where('id', '=', network).execute());
  await plane.call('PATCH', path, { token, body: { description: 'changed' } });
  const { nonce } = (await read(one, 'follow')).body.data;
  expect(nonce).toMatch(/^\S{8,}$/);
  await remove();
  expect((await read(one, 'follow')).body.deleted).toEqual({ id: network, nonce });
});

test('a network that an earlier version made has a nonce by its deletion at the latest', async () => {
  const { one, read, remove, plane, network } = await start();
  const set = { lasting_nonce: null };
  await withDatabase(plane.dataDir, (db) => db.updateTable('networks').set(set).where('id', '=', network).execute());
  await remove();
  const { status, body } = await read(one, 'follow');
  expect([status, body.deleted]).toEqual([410, { id: network, nonce: expect.stringMatching(/^\S{8,}$/) }]);
});
