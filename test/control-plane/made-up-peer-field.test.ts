import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import * as z from 'zod';

// Follows "A field of a peer" in CONTRIBUTING: its schemas, its column, and its entry in the table of each side.
beforeAll(() => {
  vi.resetModules();
  vi.doMock(import('../../src/contract/peer.ts'), async (original) => {
    const real = await original();
    const rack = z.object({ row: z.int() });
    return {
      ...real,
      Peer: real.Peer.extend({ location: z.string().optional(), rack: rack.optional() }),
      ChangePeer: real.ChangePeer.extend({
        location: z.string().max(120).nullable().optional(),
        rack: rack.nullable().optional(),
      }),
    } as unknown as typeof real;
  });
  vi.doMock(import('../../src/control-plane/store/migrations/migrations.ts'), async (original) => {
    const real = await original();
    const added: (typeof real.migrations)[string] = async (db) => {
      await db.schema.alterTable('peers').addColumn('location', 'text').execute();
      await db.schema.alterTable('peers').addColumn('rack', 'text').execute();
    };
    return { ...real, migrations: { ...real.migrations, '9999-made-up': added } };
  });
  vi.doMock(import('../../src/control-plane/store/peer-columns.ts'), async (original) => {
    const real = await original();
    (real.listedFieldColumns as unknown[]).push(['location', 'text'], ['rack', 'json']);
    return real;
  });
  vi.doMock(import('../../src/core/map/peer-fields.ts'), async (original) => {
    const real = await original();
    (real.listedPeerFields as unknown[]).push(['location', { name: 'location', kind: 'text', max: 120 }]);
    return real;
  });
});

afterAll(() => {
  vi.doUnmock('../../src/contract/peer.ts');
  vi.doUnmock('../../src/control-plane/store/migrations/migrations.ts');
  vi.doUnmock('../../src/control-plane/store/peer-columns.ts');
  vi.doUnmock('../../src/core/map/peer-fields.ts');
  vi.resetModules();
});

test('a field of a peer that is in the tables is set, stored, sent to hosts, saved and shown', async () => {
  const { enroll, makeKey, makeNetwork, startPlane } = await import('./harness.ts');
  const { decodeWholeNetwork } = await import('../../src/api/decode/admin.ts');
  const { decodeMap } = await import('../../src/api/decode/map.ts');
  const { formatState, parseState } = await import('../../src/store/state/state-file.ts');
  const { state } = await import('../store/samples.ts');

  const plane = await startPlane();
  const token = await plane.signIn('member');
  const network = await makeNetwork(plane, token);
  const enrolled = (await enroll(plane, await makeKey(plane, token, network))).body.data;
  const path = `/api/networks/${network}`;
  const change = (body: object, by = token) =>
    plane.call('PATCH', `${path}/peers/${enrolled.peer.id}`, { token: by, body });
  const fields = { location: 'hall 2', rack: { row: 7 } };
  expect((await change(fields)).body.data).toMatchObject(fields);
  expect(await change({ location: 'roof' }, enrolled.access_token)).toMatchObject({
    status: 403,
    body: { message: 'a peer may not change its location; ask an owner, admin or member' },
  });
  expect((await change({ name: 'edge-1' })).body.data).toMatchObject(fields);
  const [entry] = (
    await plane.call('GET', '/api/audit?action=peer.update', { token: await plane.signIn('admin') })
  ).body.data.slice(-1);
  expect(entry.details).toMatchObject(fields);

  const source = { url: plane.url, secrets: [] };
  const { body } = await plane.call('GET', path, { token: enrolled.access_token });
  expect(body.data.peers).toEqual([expect.objectContaining(fields)]);
  expect(decodeWholeNetwork(body, source).peers).toEqual([expect.objectContaining({ location: 'hall 2' })]);
  const map = decodeMap(body, source, { network, etag: null });
  expect(map.peers).toEqual([expect.objectContaining({ location: 'hall 2' })]);
  body.data.peers[0].location = { latitude: 7 };
  expect(decodeMap(body, source, { network, etag: null }).peers[0]).not.toHaveProperty('location');

  const { membership } = state;
  if (membership === null) throw new Error('the sample has a network');
  const text = formatState({ ...state, membership: { ...membership, map } });
  expect(parseState(text).membership?.map.peers).toEqual(map.peers);
  expect(parseState(formatState(state)).membership?.map).toMatchObject({ revision: membership.map.revision });
  // The version before did not store the field, so the map is fetched again.
  const earlier = formatState(state).replace(/"fields": (\d+)/, (_, fields) => `"fields": ${Number(fields) - 1}`);
  expect(parseState(earlier).membership?.map.revision).toBeNull();

  const cleared = (await change({ location: null, rack: null })).body.data;
  expect(cleared).not.toHaveProperty('location');
  expect(cleared).not.toHaveProperty('rack');
});
