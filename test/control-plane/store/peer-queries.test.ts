import { expect, test } from 'vitest';
import type { PeerMessage, PeerMessageKind } from '../../../src/contract/network.ts';
import { insertChanges, listChanges, rememberedRevisions } from '../../../src/control-plane/store/changes.ts';
import {
  claimDeliveries,
  countDeliveries,
  hasDueDelivery,
  postponeDelivery,
} from '../../../src/control-plane/store/deliveries.ts';
import { insertEvent, listEvents } from '../../../src/control-plane/store/events.ts';
import { readAddressUse, returnAddress, reuseAddress } from '../../../src/control-plane/store/networks.ts';
import { countSuffixed, findLabelHolder } from '../../../src/control-plane/store/peers/labels.ts';
import {
  findNextExpiry,
  listEndpoints,
  listExpired,
  listKeys,
  listNetworksWithExpired,
  listPeerPage,
  listPeers,
  listPeersAmong,
  listTokenMarks,
} from '../../../src/control-plane/store/peers/peer-lists.ts';
import {
  deleteMessages,
  insertMessages,
  listAddressees,
  listMessages,
} from '../../../src/control-plane/store/peers/peer-messages.ts';
import {
  findByIdentity,
  findKeyUse,
  findLastServingSince,
  insertPeer,
} from '../../../src/control-plane/store/peers/peers.ts';
import { ago, day, withRows } from './stored-rows.ts';

const [past, present, future] = [ago(1), ago(0), ago(-1)];
const suspended = { suspended_at: ago(day) };
const expired = { expired: 1, expires_at: past };
const idsOf = (rows: readonly { id: number }[]) => rows.map(({ id }) => id);

test('the map has the peers of its network that are neither suspended nor expired, and people see the others too', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const [one, out, over, two] = [await addPeer(), await addPeer(suspended), await addPeer(expired), await addPeer()];
    const own = await addPeer({ peer_type: 'connector', routes: '[]' });
    const withdrawn = await addPeer({ peer_type: 'connector', withdrawn: '["192.168.1.0/24"]' });
    await addPeer({ network_id: await addNetwork() });
    const listed = [one, two, own, withdrawn];
    expect(idsOf(await listPeers(db, network))).toEqual(listed);
    expect((await listTokenMarks(db, network)).map(([id]) => id)).toEqual(listed);
    expect((await listTokenMarks(db, network, [two, out, 99])).map(([id]) => id)).toEqual([two]);
    const page = async (which: Parameters<typeof listPeerPage>[2]['which']) =>
      idsOf((await listPeerPage(db, network, { which, owned: false }, { after: null, skip: 0, limit: 10 })).entries);
    expect([await page('listed'), await page('unlisted')]).toEqual([listed, [out, over]]);
    expect(await page('all')).toEqual([one, out, over, two, own, withdrawn]);
    const among = async (ids: number[], withOwnRoutes: boolean) =>
      idsOf(await listPeersAmong(db, network, { ids, withOwnRoutes }));
    expect(await among([two, out, over], false)).toEqual([two]);
    expect(await among([two, out], true)).toEqual([two, own, withdrawn]);
    expect([await among([], false), await among([], true)]).toEqual([[], [own, withdrawn]]);
    // A host that is suspended is in the network too, and its endpoint may come back.
    expect(await listKeys(db, network)).toHaveLength(6);
  }));

test('the endpoints of a network are those of all its peers, suspended ones too', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const endpoint = '203.0.113.1:51820';
    const ids = [await addPeer({ endpoint }), await addPeer({ ...suspended, endpoint })];
    await addPeer();
    await addPeer({ network_id: await addNetwork(), endpoint });
    expect((await listEndpoints(db, network)).map((each) => [each.id, each.endpoint])).toEqual(
      ids.map((id) => [id, endpoint]),
    );
  }));

test('a peer expires at its instant, once, and not while it is suspended', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    expect(await findNextExpiry(db)).toBeNull();
    const later = await addNetwork();
    await addPeer({ network_id: later, expires_at: future });
    const ids = [await addPeer({ expires_at: present }), await addPeer({ expires_at: past })];
    await addPeer({ ...suspended, expires_at: ago(5) });
    await addPeer({ ...expired, expires_at: ago(5) });
    await addPeer();
    expect(await findNextExpiry(db)).toBe(past);
    expect(await listNetworksWithExpired(db, present)).toEqual([network]);
    expect(idsOf(await listExpired(db, network, present))).toEqual(ids);
    expect(await listExpired(db, later, present)).toEqual([]);
    expect((await listNetworksWithExpired(db, future)).toSorted((a, b) => a - b)).toEqual([network, later]);
  }));

test('a public key is in use by the peer that has it, and kept for the one that had it before', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const id = await addPeer({ public_key: 'now', previous_key: 'before' });
    await addPeer({ public_key: 'other', previous_key: 'now' });
    await addPeer({ network_id: await addNetwork(), public_key: 'elsewhere' });
    const use = (key: string, except?: number) => findKeyUse(db, network, key, except);
    expect([await use('now'), await use('before'), await use('elsewhere')]).toEqual(['present', 'previous', null]);
    expect([await use('now', id), await use('before', id), await use('other', id)]).toEqual([
      'previous',
      null,
      'present',
    ]);
  }));

test('a label is held by the peer that has it, or by the one without a label that its number names', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const named = await addPeer({ label: 'edge' });
    const [nameless, other] = [await addPeer({ label: null }), await addPeer({ label: 'peer-99' })];
    const elsewhere = await addPeer({ network_id: await addNetwork(), label: null });
    const holder = async (label: string, except?: number) => (await findLabelHolder(db, network, label, except))?.id;
    expect([await holder('edge'), await holder('edge', named), await holder('edges')]).toEqual([
      named,
      undefined,
      undefined,
    ]);
    expect([await holder(`peer-${nameless}`), await holder(`peer-${nameless}`, nameless)]).toEqual([
      nameless,
      undefined,
    ]);
    expect([
      await holder(`peer-${named}`),
      await holder(`peer-${elsewhere}`),
      await holder(`peer-0${nameless}`),
    ]).toEqual([...[undefined, undefined, undefined]]);
    expect(await holder('peer-99')).toBe(other);
    for (const label of ['edge-2', 'edge-3', 'edges', 'my-edge-2']) await addPeer({ label });
    expect(await countSuffixed(db, network, 'edge')).toBe(2);
    await db.insertInto('former_labels').values({ network_id: network, peer_id: named, label: 'edge-4' }).execute();
    expect(await countSuffixed(db, network, 'edge')).toBe(3);
  }));

test('an identity is that of the first peer of the network that has it', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const identity_key = 'identity';
    await addPeer({ network_id: await addNetwork(), identity_key });
    expect(await findByIdentity(db, network, identity_key)).toBeUndefined();
    const first = await addPeer({ identity_key });
    await addPeer({ identity_key });
    expect((await findByIdentity(db, network, identity_key))?.id).toBe(first);
  }));

test('an address is taken within its network alone, and released ones come back in the order of their release', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const taken = {
      token_hash: 'x',
      created_at: past,
      address: '10.77.0.1',
      name: 'n',
      peer_type: 'origin',
      public_key: 'k',
    } as const;
    await addPeer({ address: taken.address });
    expect(await insertPeer(db, { ...taken, network_id: network })).toBeUndefined();
    const other = await addNetwork();
    expect(await insertPeer(db, { ...taken, network_id: other })).toMatchObject({ address: taken.address });
    const returned = async (of = network) => (await readAddressUse(db, of)).returned;
    for (const address of ['10.77.0.9', '10.77.0.3']) await returnAddress(db, network, address);
    await returnAddress(db, other, '10.77.0.9');
    expect(await returned()).toBe('10.77.0.9');
    await reuseAddress(db, network, '10.77.0.9');
    expect([await returned(), await returned(other)]).toEqual(['10.77.0.3', '10.77.0.9']);
  }));

test('the last connector that began to serve is that of the network', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    expect(await findLastServingSince(db, network)).toBeNull();
    for (const serving_since of [past, present, null]) await addPeer({ serving_since });
    await addPeer({ network_id: await addNetwork(), serving_since: future });
    expect(await findLastServingSince(db, network)).toBe(present);
  }));

test('the changes after a revision are known while that revision is recorded, in its own history', () =>
  withRows(async ({ db, network }) => {
    // Revision 1 is that of the new network, with another nonce.
    for (let revision = 2; revision <= 4; revision += 1)
      await insertChanges(db, network, { revision, nonce: `n${revision}` }, [revision * 10]);
    const after = async (revision: number, nonce = `n${revision}`) =>
      (await listChanges(db, network, { revision, nonce }))?.map(({ peer }) => peer) ?? null;
    expect([await after(2), await after(3), await after(4)]).toEqual([[30, 40], [40], []]);
    expect([await after(5), await after(3, 'other')]).toEqual([null, null]);
    const latest = 2 + rememberedRevisions;
    await insertChanges(db, network, { revision: latest, nonce: 'latest' }, [null]);
    expect(await after(2)).toEqual([30, 40, null]);
    await insertChanges(db, network, { revision: latest + 1, nonce: 'later' }, [null]);
    expect([await after(2), await after(3)]).toEqual([null, [40, null, null]]);
  }));

test('a message is for its peer, of the kinds that it takes, oldest first, and once', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const [one, two] = [await addPeer(), await addPeer()];
    const elsewhere = await addNetwork();
    const other = await addPeer({ network_id: elsewhere });
    const probe = (...peers: number[]) => ({ kind: 'probe' as const, data: { peers } });
    const send = (of: number, at: string, to: Parameters<typeof insertMessages>[2], since = ago(day)) =>
      insertMessages(db, of, to, { at, since });
    await send(network, ago(20), [
      [one, probe(1)],
      [two, probe(2)],
    ]);
    await send(network, past, [[one, probe(3)]]);
    await send(network, present, [[one, probe(4)]]);
    await send(elsewhere, ago(20), [[other, probe(5)]]);
    await send(network, past, [[two, { kind: 'return', data: { peer: one } }]]);
    const addressees = async (since: string) =>
      (await listAddressees(db, network, since)).map(({ peer, kind }) => [peer, kind]).toSorted();
    expect(await addressees(past)).toEqual([
      [one, 'probe'],
      [two, 'return'],
    ]);
    expect(await addressees(ago(20))).toEqual([
      [one, 'probe'],
      [two, 'probe'],
      [two, 'return'],
    ]);
    const take = async (kinds: readonly PeerMessageKind[], since: string, most = 9) => {
      const found = await listMessages(db, one, kinds, { since, most });
      const ids = found.map(({ id }) => id);
      // Only those for the peer itself are deleted.
      await deleteMessages(db, two, ids);
      expect((await listMessages(db, one, kinds, { since, most })).map(({ id }) => id)).toEqual(ids);
      await deleteMessages(db, one, ids);
      return found.map(({ message, at }) => [message, at]);
    };
    expect(await take(['try'], ago(day))).toEqual([]);
    expect(await take(['probe'], past, 1)).toEqual([[probe(3), Date.parse(past)]]);
    expect(await take(['probe'], past)).toEqual([[probe(4), Date.parse(present)]]);
    expect(await take(['probe'], past)).toEqual([]);
    // What is older than they live goes with the next message of its network.
    await send(network, present, [[one, probe(6)]], ago(19));
    const left = await db.selectFrom('peer_messages').select('peer_id').orderBy('id').execute();
    expect(left.map(({ peer_id }) => peer_id)).toEqual([other, two, one]);
  }));

test('messages for more hosts than one statement has are all stored, each with its own data', () =>
  withRows(async ({ db, network, addPeer }) => {
    const { id: _, ...row } = await db
      .selectFrom('peers')
      .selectAll()
      .where('id', '=', await addPeer())
      .executeTakeFirstOrThrow();
    const added = Array.from({ length: 450 }, (_peer, index) => ({
      ...{ ...row, label: null, public_key: `${index}`, token_hash: `${index}`, address: `10.99.0.${index}` },
    }));
    const peers = await db.insertInto('peers').values(added).returning('id').execute();
    const messages = peers.map(({ id }): [number, PeerMessage] => [id, { kind: 'probe', data: { peers: [id] } }]);
    await insertMessages(db, network, messages, { at: present, since: ago(day) });
    const stored = await db.selectFrom('peer_messages').select(['peer_id', 'data']).orderBy('peer_id').execute();
    expect(stored).toEqual(peers.map(({ id }) => ({ peer_id: id, data: JSON.stringify({ peers: [id] }) })));
  }));

test('events for the webhook are due at their instant, the earliest first, and belong to the process that claimed them', () =>
  withRows(async ({ db }) => {
    const add = (event_id: number, next_at: string, created_at = past) =>
      db.insertInto('deliveries').values({ event_id, body: '{}', created_at, attempts: 2, next_at }).execute();
    await add(1, future, ago(9));
    expect([await hasDueDelivery(db, present), await hasDueDelivery(db, future)]).toEqual([false, true]);
    for (const [id, at] of [
      [2, present],
      [3, ago(5)],
      [4, past],
      [5, past],
    ] as const)
      await add(id, at);
    const claimed = await claimDeliveries(db, { now: present, until: future, limit: 3 });
    expect(claimed.map((each) => [each.event_id, each.attempts, each.next_at]).toSorted()).toEqual([
      [3, 3, future],
      [4, 3, future],
      [5, 3, future],
    ]);
    expect(await countDeliveries(db)).toEqual({ count: 5, oldest: ago(9) });
    const [first, second] = claimed.toSorted((one, other) => one.id - other.id);
    if (first === undefined || second === undefined) return expect.unreachable();
    await postponeDelivery(db, first, ago(-50));
    await postponeDelivery(db, { ...second, attempts: 2 }, ago(-50));
    const due = await db
      .selectFrom('deliveries')
      .select(['event_id', 'next_at'])
      .where('next_at', '>', present)
      .orderBy('id')
      .execute();
    expect(due.map((each) => [each.event_id, each.next_at])).toEqual([
      [1, future],
      [3, ago(-50)],
      [4, future],
      [5, future],
    ]);
  }));

test('events come after the one that the client has, or the newest where it names none or one of another history', () =>
  withRows(async ({ db, network, addNetwork }) => {
    const event = { at: present, type: 'peer.online', peer: null, route: null, details: {} } as const;
    const add = (of = network) => insertEvent(db, { ...event, network: of });
    const [elsewhere, ids] = [await addNetwork(), [] as number[]];
    for (let count = 0; count < 4; count += 1) ids.push(await add());
    const foreign = await add(elsewhere);
    const read = async (after: number | null, limit = 3) => idsOf(await listEvents(db, network, after, limit));
    expect([await read(null), await read(ids[0] ?? 0), await read(ids[1] ?? 0, 1)]).toEqual([
      ids.slice(1),
      ids.slice(1),
      [ids[2]],
    ]);
    // The client has the newest one; and an id that no event of this network has reached.
    expect([await read(ids[3] ?? 0), await read(foreign)]).toEqual([[], ids.slice(1)]);
    expect(await listEvents(db, await addNetwork(), 5, 3)).toEqual([]);
  }));
