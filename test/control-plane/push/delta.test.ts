import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeMap } from '../../../src/api/decode/map.ts';
import { insertChanges, rememberedRevisions } from '../../../src/control-plane/store/changes.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { connectPeerService } from '../../api/described-service.ts';
import { eventually } from '../../lab/eventually.ts';
import { closePlane, enroll, makeKey, makeNetwork, withDatabase } from '../harness.ts';
import { long, makeOffice, openWaiting, tagged, untagged, untilWaiting, type Waiting } from './long-poll.ts';

let on: Waiting;
beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => closePlane(on.plane));

const call = (method: string, path: string, body?: object) =>
  on.plane.call(method, `/api/networks/${path}`, { token: on.token, body });

/** Requests the changes since the revision in If-None-Match. */
async function readSince(
  network: number,
  named: string | null,
  headers: Record<string, string> = {},
  token = on.token,
) {
  const since = named === null ? {} : { 'if-none-match': await tagged(on.plane, network, named) };
  return on.plane.call('GET', `/api/networks/${network}`, {
    token,
    headers: { 'a-im': 'cpn-delta', ...since, ...headers },
  });
}

describe('what is different since a revision', () => {
  test.each([
    ['a change of a peer', 'PATCH', '/peers/PEER', { name: 'moved' }, [{ name: 'moved' }], 0],
    ['a removal', 'DELETE', '/peers/PEER', undefined, [], 1],
    ['a change of the network', 'PATCH', '', { name: 'moved' }, [], 0],
  ] as const)('%s is all that the delta has', async (_, method, path, body, peers, removed) => {
    const { network, key, peer } = await makeOffice(on);
    await enroll(on.plane, key);
    await call(method, `${network}${path.replace('PEER', String(peer))}`, body);
    const { status, headers, body: reply } = await readSince(network, '"3"');
    const tags = [headers.get('delta-base'), headers.get('etag')].map(untagged);
    expect([status, headers.get('im'), ...tags]).toEqual([226, 'cpn-delta', '"3"', '"4"']);
    const whole = (await call('GET', `${network}`)).body.data;
    const { peers: _peers, ...summary } = whole;
    expect(reply.data).toMatchObject({ ...summary, peers, base: await tagged(on.plane, network, '"3"') });
    expect(whole).not.toHaveProperty('base');
    expect([reply.data.peers.length, reply.data.removed]).toEqual([peers.length, removed ? [peer] : []]);
  });

  test('comes after a wait, to the peer itself too', async () => {
    const { network, key, peerToken } = await makeOffice(on);
    const replies = [on.token, peerToken].map((token) => readSince(network, '"2"', { prefer: long }, token));
    await untilWaiting(on, network, 2);
    const { peer } = (await enroll(on.plane, key)).body.data;
    for (const { status, headers, body } of await Promise.all(replies)) {
      expect([status, headers.get('preference-applied')]).toEqual([226, long]);
      expect(body.data).toMatchObject({ revision: 3, peers: [peer], removed: [] });
    }
  });

  test.each([
    ['weak, by nginx', (etag: string) => `W/${etag}`],
    ['with a suffix, by Apache', (etag: string) => etag.replace(/"$/, '-gzip"')],
    ['with both', (etag: string) => `W/${etag.replace(/"$/, '--gzip"')}`],
  ])('is sent to a client whose ETag is %s', async (_, alter) => {
    const { network, key, peerToken } = await makeOffice(on);
    const named = { 'if-none-match': alter(await tagged(on.plane, network, '"2"')) };
    expect((await readSince(network, null, named, peerToken)).status).toBe(304);
    const waiting = readSince(network, null, { ...named, prefer: long }, peerToken);
    await untilWaiting(on, network);
    await enroll(on.plane, key);
    const { status, headers, body } = await waiting;
    // A host of an earlier version compares it with the ETag that it has.
    expect([status, headers.get('delta-base')]).toEqual([226, named['if-none-match']]);
    expect([body.data.revision, body.data.etag]).toEqual([3, headers.get('etag')]);
  });

  test('has the ETag in the body, as the whole map has, and no proxy may store or change either', async () => {
    const { network, key } = await makeOffice(on);
    await enroll(on.plane, key);
    for (const reply of [
      await readSince(network, '"2"'),
      await readSince(network, null),
      await readSince(network, '"1"'),
    ]) {
      expect(reply.body.data.etag).toBe(reply.headers.get('etag'));
      expect(reply.headers.get('cache-control')).toBe('no-store, no-transform');
    }
  });

  test('is nothing while nothing is', async () => {
    const { network } = await makeOffice(on);
    expect((await readSince(network, '"2"')).status).toBe(304);
  });

  test.each<[string, string | null, Record<string, string>]>([
    ['does not ask for it', '"2"', { 'a-im': 'vcdiff, gzip' }],
    ['will not have it', '"2"', { 'a-im': 'cpn-delta;q=0' }],
    ['names no revision', null, {}],
    ['names one of several', '"2", "1"', {}],
    ['names one with a suffix that no proxy appends', '"2"x', {}],
    ['names one that is none', '"x"', {}],
    ['names one that is yet to come', '"9"', {}],
    ['names one from before the network was', '"0"', {}],
  ])('is not sent to a client that %s: the whole network is', async (_, named, headers) => {
    const { network, key } = await makeOffice(on);
    await enroll(on.plane, key);
    const reply = await readSince(network, named, headers);
    expect([reply.status, reply.headers.get('im'), reply.headers.get('delta-base')]).toEqual([200, null, null]);
    expect(reply.body.data.peers).toHaveLength(2);
  });

  test('is sent for a list of instance manipulations that has it', async () => {
    const { network } = await makeOffice(on);
    expect((await readSince(network, '"1"', { 'a-im': 'vcdiff;q=0.5, CPN-Delta;q=0.7' })).status).toBe(226);
  });

  test('reaches back to the oldest recorded revision', async () => {
    const { network, peer } = await makeOffice(on);
    for (let count = 0; count < rememberedRevisions; count++) {
      await call('PATCH', `${network}/peers/${peer}`, { endpoint: `203.0.113.1:${1024 + count}` });
    }
    expect([(await readSince(network, '"1"')).status, (await readSince(network, '"2"')).status]).toEqual([200, 226]);
    const kept = await withDatabase(on.plane.dataDir, (db) =>
      db.selectFrom('changes').selectAll().where('network_id', '=', network).orderBy('revision').execute(),
    );
    // The oldest one is the earliest base of a delta.
    const now = 2 + rememberedRevisions;
    expect([kept.length, kept[0]?.revision, kept.at(-1)?.revision]).toEqual([rememberedRevisions + 1, 2, now]);
  });

  test('is not sent where a revision in between is not recorded: it may be about anything', async () => {
    const { network, key } = await makeOffice(on);
    await enroll(on.plane, key);
    await enroll(on.plane, key);
    // Of the one that is not known the ETag is still the right one.
    await tagged(on.plane, network, '"3"');
    await withDatabase(on.plane.dataDir, (db) =>
      db.deleteFrom('changes').where('network_id', '=', network).where('revision', '=', 3).execute(),
    );
    const statuses = ['"1"', '"2"', '"3"'].map(async (named) => (await readSince(network, named)).status);
    expect(await Promise.all(statuses)).toEqual([200, 200, 200]);
  });

  test('is not sent where more than 10,000 peers changed: the whole map has them', async () => {
    const { network } = await makeOffice(on);
    const { revision, etag } = (await call('GET', `${network}`)).body.data;
    const nonce = etag.slice(1, -1).replace(`${revision}-`, '');
    const record = (count: number) =>
      withDatabase(on.plane.dataDir, (db) =>
        insertChanges(
          db,
          network,
          { revision, nonce },
          Array.from({ length: count }, (_, at) => 1_000_000 + at),
        ),
      );
    await record(9_999);
    expect((await readSince(network, `"${revision - 1}"`)).status).toBe(226);
    await record(10_001);
    await call('PATCH', `${network}`, { description: 'another revision' });
    const { status, body } = await readSince(network, `"${revision - 1}"`);
    expect([status, body.data.peers.length, body.data.removed.length]).toEqual([200, 1, 10_001]);
    expect((await readSince(network, `"${revision}"`)).status).toBe(226);
  });

  test('is not sent for an ETag in another spelling', async () => {
    const { network, key } = await makeOffice(on);
    await enroll(on.plane, key);
    const statuses = ['"2"', '"02"', '"0002"'].map(async (named) => (await readSince(network, named)).status);
    expect(await Promise.all(statuses)).toEqual([226, 200, 200]);
  });

  test('goes with its network', async () => {
    const { network } = await makeOffice(on);
    await call('DELETE', `${network}`);
    expect((await readSince(network, '"1"')).status).toBe(404);
    const left = await withDatabase(on.plane.dataDir, (db) =>
      db.selectFrom('changes').select('revision').where('network_id', '=', network).execute(),
    );
    expect(left).toEqual([]);
  });
});

describe('a whole map in reply to a revision', () => {
  const readWhole = (network: number, named: string) => readSince(network, named, { 'a-im': '' });

  test('states which peers are gone since then: removed, suspended and expired ones', async () => {
    const { network, key, peer } = await makeOffice(on);
    const ids: number[] = [];
    for (let count = 0; count < 3; count++) ids.push((await enroll(on.plane, key)).body.data.peer.id);
    const [removed = 0, suspended = 0, stays] = ids;
    expect((await readWhole(network, '"2"')).body.data).not.toHaveProperty('removed');
    await call('DELETE', `${network}/peers/${removed}`);
    await call('PATCH', `${network}/peers/${suspended}`, { suspended: true });
    await withDatabase(on.plane.dataDir, (db) =>
      db.updateTable('peers').set({ expires_at: '2020-01-01T00:00:00.000Z' }).where('id', '=', peer).execute(),
    );
    await eventually('the expired peer is out of the map', async () => {
      // A change of an expiry makes the control plane look for expired peers.
      await call('PATCH', `${network}/peers/${stays}`, { expires_at: '2999-01-01T00:00:00Z' });
      return (await call('GET', `${network}`)).body.data.peers.length === 1;
    });
    const { status, body, headers } = await readWhole(network, '"5"');
    expect([status, headers.get('im'), body.data.removed]).toEqual([200, null, [peer, removed, suspended]]);
    expect(body.data.peers.map(({ id }: { id: number }) => id)).toEqual([stays]);
    // Since a later revision it is less, and without a revision nothing.
    expect((await readWhole(network, '"6"')).body.data.removed).toEqual([peer, suspended]);
    expect((await call('GET', `${network}`)).body.data).not.toHaveProperty('removed');
  });

  test('states nothing of a peer that is back, and nothing since a revision that is not recorded', async () => {
    const { network, peer } = await makeOffice(on);
    await call('PATCH', `${network}/peers/${peer}`, { suspended: true });
    await call('PATCH', `${network}/peers/${peer}`, { suspended: false });
    expect((await readWhole(network, '"2"')).body.data).not.toHaveProperty('removed');
    await call('DELETE', `${network}/peers/${peer}`);
    expect((await readWhole(network, '"9"')).body.data).not.toHaveProperty('removed');
    expect((await readWhole(network, '"2"')).body.data.removed).toEqual([peer]);
  });
});

/** One change of a network; `pick` selects the peer. */
const anyStep = fc.record({
  kind: fc.constantFrom('enroll', 'rename', 'limit', 'withdraw', 'remove', 'routes', 'name'),
  pick: fc.nat({ max: 99 }),
  value: fc.nat({ max: 2 }),
});
const routes = ['192.168.1.0/24', '192.168.2.0/24'];

test('the delta between any two revisions turns the earlier map into the later one', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 4, maxLength: 12 }), async (steps) => {
      const network = await makeNetwork(on.plane, on.token, { routes });
      const keys = [await makeKey(on.plane, on.token, network), await makeKey(on.plane, on.token, network)];
      // No delta may be refused and the whole map read instead.
      const onRetry = ({ problem }: { problem: string }) => expect.unreachable(problem);
      const service = connectPeerService({ url: on.plane.url, insecureHttp: false }, { onRetry });
      const bodies = new Map<string, unknown>();
      const look = async () => {
        const { body, headers } = await call('GET', `${network}`);
        bodies.set(headers.get('etag') ?? '', body);
        return body.data;
      };
      await look();
      for (const [index, { kind, pick, value }] of steps.entries()) {
        const { peers } = await look();
        const peer = peers[pick % Math.max(1, peers.length)]?.id;
        const some = routes.slice(0, value);
        if (kind === 'enroll' || peer === undefined) {
          await enroll(on.plane, keys[index % 2] as string, { peer_type: 'connector' });
        } else if (kind === 'rename') await call('PATCH', `${network}/peers/${peer}`, { name: `n${value}-${peer}` });
        else if (kind === 'limit') await call('PATCH', `${network}/peers/${peer}`, { routes: value ? some : null });
        else if (kind === 'withdraw') await call('PATCH', `${network}/peers/${peer}`, { withdrawn: some });
        else if (kind === 'remove') await call('DELETE', `${network}/peers/${peer}`);
        else if (kind === 'routes') await call('PATCH', `${network}`, { routes: some });
        else await call('PATCH', `${network}`, { name: `n${value}` });
      }
      await look();
      const source = { url: on.plane.url, secrets: [] };
      const maps = [...bodies].map(([etag, body]) => decodeMap(body, source, { network, etag }));
      const last = maps.at(-1);
      for (const map of maps.slice(0, -1)) {
        const { map: changed } = await service.readMap(network, new Secret(on.token), map);
        expect(changed).toEqual(last);
      }
    }),
    { numRuns: 12 },
  );
  expect(on.plane.log()).toContain('"status":226');
});
