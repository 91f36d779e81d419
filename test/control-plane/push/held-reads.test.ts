import type { Kysely } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import type { UserCaller } from '../../../src/control-plane/domain/caller.ts';
import { readers } from '../../../src/control-plane/domain/caller.ts';
import { createHealthPoll } from '../../../src/control-plane/health/health.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { createLongPoll } from '../../../src/control-plane/push/long-poll.ts';
import { createMapCache } from '../../../src/control-plane/push/map-cache.ts';
import { createPeerReader, createSnapshots, type ObservedRevision } from '../../../src/control-plane/push/snapshot.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { enroll as enrollHost } from '../../../src/control-plane/service/enrollment/enrollment.ts';
import { readEvents } from '../../../src/control-plane/service/events.ts';
import type { Revision } from '../../../src/control-plane/store/changes.ts';
import type { Tables } from '../../../src/control-plane/store/tables.ts';
import { eventually } from '../../lab/eventually.ts';
import { contextOver, enroll, makeFolder, publicKey, quiet, startPlane, withDatabase } from '../harness.ts';
import { controlStatements } from '../held-statements.ts';
import { makeOffice } from './long-poll.ts';

const statements = controlStatements();
/** What a snapshot begins with. */
const networkRead = /^select \* from "networks"/;

/** A network at revision 2, and a connection of its own to the database, whose reads are held while others change the network. */
async function withOffice(work: (office: Awaited<ReturnType<typeof open>>, db: Kysely<Tables>) => Promise<void>) {
  const office = await open();
  await withDatabase(office.plane.dataDir, (db) => work(office, db));
}

async function open() {
  // Nothing of its own is written meanwhile.
  const plane = await startPlane({ dataDir: makeFolder(), healthTimes: quiet });
  const token = await plane.signIn('owner');
  return { plane, token, ...(await makeOffice({ plane, token })) };
}

const owner = {
  ...{ kind: 'user', userId: 1, email: '', organizationId: 1, role: 'owner', networks: null, scope: 'filtered' },
  ...{ credential: { kind: 'session', id: 1, isLimited: false }, address: '127.0.0.1', access: readers },
} as UserCaller;

function waitRequest() {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  return { signal: end.signal, isDisconnected: () => false, authenticate: async () => owner };
}

/** Fails if the wait goes on: a change that it missed would not come again. */
async function ended<Result>(wait: Promise<Result>): Promise<Result> {
  let hasEnded = false;
  wait.finally(() => {
    hasEnded = true;
  });
  await eventually('the wait ends', () => hasEnded, { timeoutMs: 20_000, everyMs: 5 });
  return wait;
}

const isRevision =
  (number: number) =>
  ({ revision }: Revision) =>
    revision === number;

test('a change between the read of a long poll and its wait ends the wait', () =>
  withOffice(async ({ plane, network, key }, db) => {
    const notifier = new ChangeNotifier();
    const held = statements.hold(networkRead, 'after');
    const poll = createLongPoll({ db, notifier })(owner, network, { ...waitRequest(), isCurrent: isRevision(2) });
    await held.reached;
    await enroll(plane, key);
    notifier.notify(network);
    held.release();
    expect(await ended(poll)).toMatchObject({ revision: { revision: 3 }, isUnchanged: false });
  }));

test('a change of health between the read of a long poll and its wait ends the wait', () =>
  withOffice(async ({ plane, network, peer, peerToken }, db) => {
    const healthNotifier = new ChangeNotifier();
    const { revision } = await db.selectFrom('network_health').select('revision').executeTakeFirstOrThrow();
    const held = statements.hold(/^select "revision", "nonce", "routes" from "network_health"/, 'after');
    const poll = createHealthPoll({ db, healthNotifier } as Context);
    const reply = poll(owner, network, { ...waitRequest(), isCurrent: isRevision(revision) });
    await held.reached;
    await plane.call('POST', `/api/networks/${network}/peers/${peer}/report`, { token: peerToken, body: { drift: 1 } });
    healthNotifier.notify(network);
    held.release();
    expect(await ended(reply)).toMatchObject({ isUnchanged: false });
  }));

test('an event between the read of events and the wait ends the wait', () =>
  withOffice(async ({ plane, network, key }, db) => {
    const healthNotifier = new ChangeNotifier();
    const { id: after } = await db
      .selectFrom('events')
      .select('id')
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
    const held = statements.hold(/^select "id" from "events"/, 'after');
    const reply = readEvents({ db, healthNotifier } as Context, owner, network, { ...waitRequest(), after, limit: 10 });
    await held.reached;
    await enroll(plane, key);
    healthNotifier.notify(network);
    held.release();
    expect(await ended(reply)).toMatchObject([{ type: 'peer.enrolled' }]);
  }));

test('a call that comes while a snapshot is read gets one of its own, with what was committed before the call', () =>
  withOffice(async ({ plane, network, key }, db) => {
    const readSnapshot = createSnapshots(db);
    const held = statements.hold(networkRead, 'after');
    const early = readSnapshot(1, network);
    await held.reached;
    await enroll(plane, key);
    const late = readSnapshot(1, network);
    held.release();
    expect([(await early).revision?.revision, (await late).revision?.revision]).toEqual([2, 3]);
  }));

test('a map that was read before a revision was observed is no answer to a request for that revision', () =>
  withOffice(async ({ plane, network, key }, db) =>
    withDatabase(plane.dataDir, async (other) => {
      const [readSnapshot, maps] = [createSnapshots(other), createMapCache(db)];
      const observe = async () => (await readSnapshot(1, network)).revision as ObservedRevision;
      const two = await observe();
      const held = statements.hold(/ from "peers" /, 'after');
      const early = maps.whole({ id: network, revision: two });
      await held.reached;
      await enroll(plane, key);
      const three = await observe();
      const late = maps.whole({ id: network, revision: three });
      held.release();
      expect([(await early).revision.revision, (await late).revision.revision]).toEqual([2, 3]);
    }),
  ));

test('a revision is observed when its read has ended: a map that was read until then is older', () =>
  withOffice(async ({ plane, network, key }, db) =>
    withDatabase(plane.dataDir, async (other) => {
      const [readSnapshot, maps] = [createSnapshots(other), createMapCache(db)];
      const two = (await createSnapshots(db)(1, network)).revision as ObservedRevision;
      const held = statements.hold(networkRead, 'before');
      const observing = readSnapshot(1, network);
      await held.reached;
      await maps.whole({ id: network, revision: two });
      await enroll(plane, key);
      held.release();
      const three = (await observing).revision as ObservedRevision;
      expect((await maps.whole({ id: network, revision: three })).revision.revision).toBe(3);
    }),
  ));

test('a map that is read while a host enrols is not the one that the host gets', () =>
  withOffice(async ({ plane, network, key }, db) =>
    withDatabase(plane.dataDir, async (other) => {
      const maps = createMapCache(other);
      const two = (await createSnapshots(other)(1, network)).revision as ObservedRevision;
      const context = contextOver(db, plane);
      const request = { enrollment_token: key, name: 'late', public_key: publicKey() };
      const options = { idempotencyKey: null, identity: {}, secretTag: null, currentNetworks: [], currentPeers: [] };
      const held = statements.hold(/^commit$/, 'before');
      const enrolling = enrollHost(context, request, options, '127.0.0.1');
      await held.reached;
      expect((await maps.whole({ id: network, revision: two })).revision.revision).toBe(2);
      held.release();
      const { peer, network: at } = await enrolling;
      const { data } = JSON.parse(String((await maps.whole(at)).bytes));
      expect(data.peers.map(({ id }: { id: number }) => id)).toContain(peer.id);
    }),
  ));

test.each([
  ['all peers', /^select "id", "token_hash" from "peers"/],
  ['the changes', / from "changes"/],
  ['the peers that changed', /^select "id", "token_hash" from "peers"/],
] as const)('a peer that is removed while %s are read is not among the peers of a revision without it', (what, read) =>
  withOffice(async ({ plane, token, network, key, peer }, db) =>
    withDatabase(plane.dataDir, async (other) => {
      const [readSnapshot, readPeers] = [createSnapshots(other), createPeerReader(db)];
      const observe = async () => (await readSnapshot(1, network)).revision as ObservedRevision;
      if (what !== 'all peers') await readPeers(network, await observe());
      const kept = (await enroll(plane, key)).body.data.peer.id;
      const before = await observe();
      const held = statements.hold(read, 'after');
      const early = readPeers(network, before);
      await held.reached;
      await plane.call('DELETE', `/api/networks/${network}/peers/${peer}`, { token });
      const after = await observe();
      const late = readPeers(network, after);
      held.release();
      await early;
      expect([...(await late).keys()]).toEqual([kept]);
    }),
  ),
);
