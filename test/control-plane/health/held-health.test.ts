import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type PeerCaller, peerOnly } from '../../../src/control-plane/domain/caller.ts';
import { Acknowledgements } from '../../../src/control-plane/health/acknowledgements.ts';
import { Evaluator } from '../../../src/control-plane/health/evaluate.ts';
import { LostConnections } from '../../../src/control-plane/health/lost-connections.ts';
import { Presence } from '../../../src/control-plane/health/presence.ts';
import { type Addressed, PeerMessages } from '../../../src/control-plane/push/peer-messages.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { claimDeliveries, postponeDelivery } from '../../../src/control-plane/store/deliveries.ts';
import { type StoredHealth, savePeerHealth } from '../../../src/control-plane/store/health.ts';
import type { Tables } from '../../../src/control-plane/store/tables.ts';
import { transact } from '../../../src/control-plane/store/transact.ts';
import { eventually } from '../../lab/eventually.ts';
import {
  closePlane,
  contextOver,
  enroll,
  makeKey,
  makeNetwork,
  openPlane,
  type Plane,
  quiet,
  withDatabase,
} from '../harness.ts';
import { controlStatements } from '../held-statements.ts';

const statements = controlStatements();
let plane: Plane;
let token: string;
beforeAll(async () => {
  // Nothing of its own is written meanwhile.
  plane = await openPlane({ healthTimes: quiet });
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const failures = { note: () => {} };

/** A network with two hosts, and what works on it over a connection of its own to the database. */
async function withHosts(
  work: (on: {
    db: Kysely<Tables>;
    context: Context;
    network: number;
    one: PeerCaller;
    two: PeerCaller;
    add: () => Promise<PeerCaller>;
  }) => Promise<void>,
) {
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const add = async (): Promise<PeerCaller> => {
    const { id, name } = (await enroll(plane, key)).body.data.peer;
    const common = {
      kind: 'peer',
      tokenMark: 0,
      expiresAt: null,
      awaitsApproval: false,
      access: peerOnly,
      address: '192.0.2.1',
    } as const;
    return { ...common, peerId: id, name, networkId: network, organizationId: 1 };
  };
  const [one, two] = [await add(), await add()];
  await withDatabase(plane.dataDir, (db) => {
    return work({ db, context: contextOver(db, plane), network, one, two, add });
  });
}

const readRow = (peer: PeerCaller): Promise<StoredHealth | undefined> =>
  withDatabase(plane.dataDir, (db) =>
    db.selectFrom('peer_health').selectAll().where('peer_id', '=', peer.peerId).executeTakeFirst(),
  );
const lastSeen = async (peer: PeerCaller) => (await readRow(peer))?.last_seen;
const nowText = () => plane.clock.now().toISOString();

describe('presence', () => {
  const open = (context: Context, returned: number[] = [], days = 30) =>
    new Presence(context, {
      ...{ days, flushMs: 1e9, settleMs: 1, failures },
      onReturn: (network) => void returned.push(network),
    });

  test('a request that arrives while earlier ones are written is written too', () =>
    withHosts(async ({ context, one }) => {
      const presence = open(context);
      presence.touch(one, {});
      plane.clock.advance(100);
      const held = statements.hold(/^commit$/, 'before');
      const writing = presence.flush();
      await held.reached;
      presence.touch(one, {});
      held.release();
      await writing;
      await presence.stop();
      expect(await lastSeen(one)).toBe(nowText());
    }));

  test('the return of a host is announced once it is stored, also of one that returns while others are written', () =>
    withHosts(async ({ context, network, one, two }) => {
      const returned: number[] = [];
      const presence = open(context, returned);
      onTestFinished(() => presence.stop());
      presence.touch(one, {});
      const held = statements.hold(/^commit$/, 'before');
      await held.reached;
      presence.touch(two, {});
      expect(returned).toEqual([]);
      held.release();
      await eventually('both are announced', () => returned.length === 2);
      expect([returned, await lastSeen(one), await lastSeen(two)]).toEqual([[network, network], nowText(), nowText()]);
    }));

  test.each(['flush', 'stop'] as const)(
    'with 0 days, a %s that begins before a host is stated offline does not bring its last request back',
    (how) =>
      withHosts(async ({ db, context, one, two }) => {
        const presence = open(context, [], 0);
        onTestFinished(() => presence.stop());
        await presence.flush();
        for (const host of [one, two]) presence.touch(host, {});
        await eventually('both are stored', async () => (await lastSeen(one)) && (await lastSeen(two)));
        for (const { peerId } of [one, two]) presence.setOnline(peerId, true);
        plane.clock.advance(1_000);
        for (const host of [one, two]) presence.touch(host, {});
        const latest = nowText();
        plane.clock.advance(120_000);
        const held = statements.hold(/^commit$/, 'before');
        const offline = { announced: 'offline', last_seen: null } as const;
        const stated = transact(db, (transaction) => savePeerHealth(transaction, one.peerId, offline));
        await held.reached;
        const written = presence[how]();
        await new Promise(setImmediate);
        held.release();
        await Promise.all([stated, written]);
        expect([await lastSeen(one), await lastSeen(two)]).toEqual([null, latest]);
      }),
  );

  test('with 0 days, a host that returns after it was stated offline is stored', () =>
    withHosts(async ({ db, context, one }) => {
      const presence = open(context, [], 0);
      onTestFinished(() => presence.stop());
      await savePeerHealth(db, one.peerId, { announced: 'offline' });
      presence.touch(one, {});
      await eventually('it is stored', async () => (await lastSeen(one)) === nowText());
    }));

  test.each(['before', 'after'])(
    'a request that came %s the loss of a connection was noticed is written at once',
    (when) =>
      withHosts(async ({ context, one }) => {
        const presence = open(context);
        presence.touch(one, {});
        await eventually('it is stored', () => lastSeen(one));
        presence.setOnline(one.peerId, true);
        plane.clock.advance(1_000);
        const lostAt = plane.clock.steadyNow();
        plane.clock.advance(1_000);
        if (when === 'before') presence.touch(one, {});
        presence.expect(one.peerId, lostAt);
        if (when === 'after') presence.touch(one, {});
        await eventually('it is stored', async () => (await lastSeen(one)) === nowText());
        await presence.stop();
      }),
  );

  test('a request after the loss of a connection is written at once, also while an earlier one is written', () =>
    withHosts(async ({ context, one }) => {
      const presence = open(context);
      onTestFinished(() => presence.stop());
      const held = statements.hold(/^commit$/, 'before');
      presence.touch(one, {});
      await held.reached;
      presence.setOnline(one.peerId, true);
      plane.clock.advance(1_000);
      const lostAt = plane.clock.steadyNow();
      plane.clock.advance(1_000);
      presence.touch(one, {});
      presence.expect(one.peerId, lostAt);
      held.release();
      await eventually('it is stored', async () => (await lastSeen(one)) === nowText(), { timeoutMs: 20_000 });
    }));
});

describe('what presence writes', () => {
  const open = (context: Context) =>
    new Presence(context, {
      ...{ days: 30, flushMs: 1e9, settleMs: 1e9, failures },
      onReturn: () => {},
    });

  test('is of all hosts, also where they are more than one transaction has', () =>
    withHosts(async ({ db, context, network, one }) => {
      const { id: _, ...row } = await db
        .selectFrom('peers')
        .selectAll()
        .where('id', '=', one.peerId)
        .executeTakeFirstOrThrow();
      const others = Array.from({ length: 220 }, (_row, index) => ({
        ...{ ...row, address: `10.99.0.${index}`, public_key: `${index}` },
        ...{ token_hash: `${network} ${index}`, label: null },
      }));
      await db.insertInto('peers').values(others).execute();
      const peers = await db.selectFrom('peers').select('id').where('network_id', '=', network).execute();
      const presence = open(context);
      for (const { id } of peers) presence.touch({ ...one, peerId: id }, {});
      await presence.stop();
      const stored = await db.selectFrom('peer_health').select('last_seen').where('network_id', '=', network).execute();
      expect(stored).toEqual(peers.map(() => ({ last_seen: nowText() })));
    }));

  test('has the version and the platform of the last request that had them', () =>
    withHosts(async ({ context, one }) => {
      const presence = open(context);
      presence.touch(one, { userAgent: 'cpn/1.2.3 (linux x64)' });
      presence.touch({ ...one, address: '192.0.2.9' }, {});
      await presence.flush();
      const facts = { platform: 'linux x64', address: '192.0.2.9' };
      expect(await readRow(one)).toMatchObject({ version: '1.2.3', ...facts });
      plane.clock.advance(120_000);
      presence.touch({ ...one, address: '192.0.2.9' }, { userAgent: 'cpn/1.2.4' });
      await presence.stop();
      expect(await readRow(one)).toMatchObject({ version: '1.2.4', ...facts });
    }));

  test.each([
    ['waits here, after the loss: another connection was lost', true],
    ['waits nowhere, as it was', false],
  ])('of a host whose connection was lost and that %s', (_how, isWaiting) =>
    withHosts(async ({ context, one }) => {
      const presence = open(context);
      presence.touch(one, {});
      await presence.flush();
      const seen = nowText();
      presence.setOnline(one.peerId, true);
      plane.clock.advance(1_000);
      presence.expect(one.peerId, plane.clock.steadyNow(), isWaiting);
      const lost = nowText();
      await presence.stop();
      const stored = (await lastSeen(one)) ?? '';
      expect([stored === seen, stored > lost]).toEqual(isWaiting ? [false, true] : [true, false]);
    }),
  );

  test('is pruned once a day, and again after a failure', () =>
    withHosts(async ({ context }) => {
      let prunings = 0;
      const stop = statements.observe((sql) => {
        if (!sql.startsWith('delete from "peer_traffic"')) return;
        prunings += 1;
        if (prunings === 1) throw new Error('the database is away');
      });
      onTestFinished(stop);
      let steady = 0;
      const presence = open({ ...context, steadyNow: () => steady });
      for (const [advanceMs, count] of [
        [0, 1],
        [0, 2],
        [0, 2],
        [24 * 3600 * 1000, 3],
      ] as const) {
        steady += advanceMs;
        await presence.flush();
        expect(prunings).toBe(count);
      }
      await presence.stop();
    }));
});

describe('while the database does not answer', () => {
  test('presence has one write that waits for the one under way, and closing adds none', () =>
    withHosts(async ({ context, one }) => {
      const presence = new Presence(context, {
        ...{ days: 30, flushMs: 1e9, settleMs: 1e9, failures },
        onReturn: () => {},
      });
      presence.touch(one, {});
      await presence.flush();
      plane.clock.advance(120_000);
      presence.touch(one, {});
      const held = statements.hold(/^begin/, 'before');
      let attempts = 0;
      const stop = statements.observe((sql) => {
        if (!sql.startsWith('begin')) return;
        attempts += 1;
        throw new Error('the database is away');
      });
      for (let time = 0; time < 20; time += 1) void presence.flush();
      await held.reached;
      for (let time = 0; time < 20; time += 1) void presence.flush();
      const stopped = presence.stop();
      held.release();
      await stopped;
      stop();
      expect(attempts).toBe(2);
    }));

  test('no host falls silent: none gets a reply', () =>
    withHosts(async ({ db, context, network, one, two }) => {
      const presence = { silenceOf: (peer: number) => (peer === one.peerId ? 0 : null), setOnline: () => {} };
      const seen = { last_seen: nowText(), announced: 'online' } as const;
      for (const { peerId } of [one, two]) await savePeerHealth(db, peerId, seen);
      let isAway = true;
      let ticks = 0;
      const stop = statements.observe((sql) => {
        if (!/^select distinct "peer_health"."network_id"/.test(sql)) return;
        ticks += 1;
        if (isAway) throw new Error('the database is away');
      });
      onTestFinished(stop);
      const judge = async (evaluator: Evaluator) =>
        (await evaluator.evaluate(network)).judged.peers.get(two.peerId)?.state;
      const options = { keepsPresence: true, settleMs: 1e9, failures };
      const present = new Evaluator(context, presence, { ...options, tickMs: 1e9 });
      const failing = new Evaluator(context, presence, { ...options, tickMs: 1 });
      onTestFinished(() => Promise.all([present.stop(), failing.stop()]).then(() => undefined));
      plane.clock.advance(200_000);
      const until = ticks + 2;
      await eventually('ticks fail', () => ticks >= until);
      expect([await judge(present), await judge(failing)]).toEqual(['offline', 'online']);
      isAway = false;
    }));

  test('no tick of an evaluator waits for the one under way', () =>
    withHosts(async ({ context }) => {
      const presence = { silenceOf: () => null, setOnline: () => {} };
      const listing = /^select distinct "peer_health"."network_id"/;
      let ticks = 0;
      const stop = statements.observe((sql) => {
        if (listing.test(sql)) ticks += 1;
      });
      onTestFinished(stop);
      const held = statements.hold(listing, 'before');
      const evaluator = new Evaluator(context, presence, { keepsPresence: true, tickMs: 1, settleMs: 1e9, failures });
      await held.reached;
      // As many intervals of the evaluator go by.
      for (let time = 0; time < 20; time += 1) await new Promise((resolve) => setTimeout(resolve, 1));
      const stopped = evaluator.stop();
      held.release();
      await stopped;
      expect(ticks).toBe(1);
    }));
});

describe('acknowledgements', () => {
  const remove = async (db: Kysely<Tables>, network: number) => {
    const gone = (await enroll(plane, await makeKey(plane, token, network))).body.data.peer.id;
    await plane.call('DELETE', `/api/networks/${network}/peers/${gone}`, { token });
    return db.selectFrom('networks').select('revision').where('id', '=', network).executeTakeFirstOrThrow();
  };
  const acknowledged = async (peer: PeerCaller) => (await readRow(peer))?.acknowledged_revision ?? null;

  test('one that comes while others are written is written too', () =>
    withHosts(async ({ db, context, network, one, two }) => {
      const { revision } = await remove(db, network);
      // Its own connection is in the transaction that is held.
      await withDatabase(plane.dataDir, async (other) => {
        const shared = { ...context };
        const acknowledgements = new Acknowledgements(shared, { settleMs: 1, failures });
        const held = statements.hold(/^commit$/, 'before');
        acknowledgements.note(one, revision);
        await held.reached;
        Object.assign(shared, { db: other });
        acknowledgements.note(two, revision);
        // Its network is known: it is due at the next turn.
        await new Promise(setImmediate);
        held.release();
        await eventually('both are stored', async () => {
          return (await acknowledged(one)) === revision && (await acknowledged(two)) === revision;
        });
        await acknowledgements.stop();
      });
    }));

  test('one that could not be written is written with the next request of its host', () =>
    withHosts(async ({ db, context, network, one }) => {
      const { revision } = await remove(db, network);
      const failed = Promise.withResolvers<unknown>();
      const note = (_part: unknown, error: unknown) => error !== null && failed.resolve(error);
      const acknowledgements = new Acknowledgements(context, { settleMs: 1, failures: { note } });
      const stop = statements.observe((sql) => {
        if (/^insert into "peer_health"/.test(sql)) throw new Error('the database is away');
      });
      acknowledgements.note(one, revision);
      expect(String(await failed.promise)).toContain('away');
      stop();
      expect(await acknowledged(one)).toBeNull();
      acknowledgements.note(one, revision);
      await eventually('it is stored', async () => (await acknowledged(one)) === revision);
      await acknowledgements.stop();
    }));

  test('many of which the first ones could not be written are all written with the next requests', () =>
    withHosts(async ({ db, context, network, one, two }) => {
      const { revision } = await remove(db, network);
      const failed = Promise.withResolvers<unknown>();
      const note = (_part: unknown, error: unknown) => error !== null && failed.resolve(error);
      const acknowledgements = new Acknowledgements(context, { settleMs: 1, failures: { note } });
      const stop = statements.observe((sql) => {
        if (/^insert into "peer_health"/.test(sql)) throw new Error('the database is away');
      });
      // Written before the two hosts: these are in a later transaction.
      for (let id = 1; id <= 1_000; id += 1) acknowledgements.note({ ...one, peerId: -id }, revision);
      for (const host of [one, two]) acknowledgements.note(host, revision);
      expect(String(await failed.promise)).toContain('away');
      stop();
      for (const host of [one, two]) acknowledgements.note(host, revision);
      await eventually('both are stored', async () => {
        return (await acknowledged(one)) === revision && (await acknowledged(two)) === revision;
      });
      await acknowledgements.stop();
    }));

  test('one whose network could not be read is written with the next request of its host', () =>
    withHosts(async ({ db, context, network, one }) => {
      const { revision } = await remove(db, network);
      const failed = Promise.withResolvers<unknown>();
      const note = (_part: unknown, error: unknown) => error !== null && failed.resolve(error);
      const acknowledgements = new Acknowledgements(context, { settleMs: 1, failures: { note } });
      const stop = statements.observe((sql) => {
        if (sql.includes('max("changes"."revision")')) throw new Error('the database is away');
      });
      acknowledgements.note(one, revision);
      expect(String(await failed.promise)).toContain('away');
      stop();
      acknowledgements.note(one, revision);
      await eventually('it is stored', async () => (await acknowledged(one)) === revision);
      await acknowledgements.stop();
    }));

  test('a removal that is newer than the last one that was read is acknowledged', () =>
    withHosts(async ({ db, context, network, one }) => {
      const acknowledgements = new Acknowledgements(context, { settleMs: 1, failures });
      for (let round = 0; round < 2; round += 1) {
        const { revision } = await remove(db, network);
        acknowledgements.note(one, revision);
        await eventually('it is stored', async () => (await acknowledged(one)) === revision);
      }
      await acknowledgements.stop();
    }));
});

describe('an evaluation', () => {
  const presence = { silenceOf: () => null, setOnline: () => {} };
  const open = (context: Context) =>
    new Evaluator(context, presence, { keepsPresence: true, tickMs: 1e9, settleMs: 1e9, failures });
  const read = / from "peer_health"/;

  test('that began before a call is no answer to it', () =>
    withHosts(async ({ context, network, one }) => {
      const evaluator = open(context);
      onTestFinished(() => evaluator.stop());
      const held = statements.hold(read, 'after');
      const early = evaluator.evaluate(network);
      await held.reached;
      await withDatabase(plane.dataDir, (db) => savePeerHealth(db, one.peerId, { last_seen: nowText() }));
      const late = evaluator.evaluate(network);
      held.release();
      const states = [await early, await late].map(({ judged }) => judged.peers.get(one.peerId)?.state);
      expect(states).toEqual(['unknown', 'online']);
    }));

  test('that began before a change was noted does not settle it', () =>
    withHosts(async ({ context, network, one }) => {
      const evaluator = open(context);
      onTestFinished(() => evaluator.stop());
      const held = statements.hold(read, 'after');
      const early = evaluator.evaluate(network);
      await held.reached;
      await withDatabase(plane.dataDir, (db) => savePeerHealth(db, one.peerId, { last_seen: nowText() }));
      evaluator.schedule(network);
      held.release();
      await early;
      const recent = await evaluator.readRecent(network);
      expect(recent?.judged.peers.get(one.peerId)?.state).toBe('online');
    }));
});

describe('a lost connection', () => {
  const times = { closedMs: 1, repliedMs: 1, repeatMs: 60_000, retryMs: 60_000, settleMs: 1, failures };

  /** The host was online, waited and went; another host can be asked. */
  async function lose(db: Kysely<Tables>, one: PeerCaller, two: PeerCaller, losses: () => LostConnections) {
    const paths = [{ peer: one.peerId, path: 'direct' }];
    const report = { paths, probes: [], routes: [], unserved: [], drift: null, pin_mismatches: [], problem: null };
    for (const { peerId } of [one, two])
      await savePeerHealth(db, peerId, { last_seen: nowText(), announced: 'online', report: JSON.stringify(report) });
    const response = Object.assign(new EventEmitter(), { destroyed: false, writableFinished: false });
    losses().watch(one, response as unknown as ServerResponse);
    response.emit('close');
  }

  test('is stored before other hosts are asked: what they answer is later', () =>
    withHosts(async ({ db, context, one, two }) => {
      const asked = Promise.withResolvers<string | null | undefined>();
      const expected: number[] = [];
      const send = async () => asked.resolve((await readRow(one))?.lost_at);
      const presence = { requestsOf: () => 1, expect: (peer: number) => void expected.push(peer) };
      const losses = new LostConnections(context, presence, { send }, times);
      await lose(db, one, two, () => losses);
      expect([await asked.promise, expected]).toEqual([expect.any(String), [one.peerId]]);
      await losses.stop();
    }));

  /** Other hosts that are asked about lost ones; each time, by host, and then the end of the attempt. */
  function openLosses(context: Context, presence = { requestsOf: () => 1, expect: () => {} }, retryMs = 5) {
    const sent: [number, unknown][][] = [];
    const send = async (_network: number, messages: Iterable<Addressed>) => {
      sent.push([...messages].map(([host, { data }]) => [host, (data as { peers: number[] }).peers]));
    };
    let attempts = 0;
    const note = () => {
      attempts += 1;
    };
    const losses = new LostConnections(context, presence, { send }, { ...times, retryMs, failures: { note } });
    const attempted = (count: number) => eventually(`attempt ${count} is over`, () => attempts >= count);
    return { losses, sent, attempted };
  }

  const online = (paths: readonly object[] = []) => ({
    ...{ last_seen: nowText(), announced: 'online' as const },
    report: JSON.stringify({ paths, routes: [], drift: null, pin_mismatches: [], problem: null }),
  });

  test('that is stored keeps its time when it is asked about again: a later reply counts since then', () =>
    withHosts(async ({ db, context, network, one, two }) => {
      const { losses, sent, attempted } = openLosses(context);
      const lost = { ...online(), lost_at: nowText() };
      await savePeerHealth(db, one.peerId, lost);
      await savePeerHealth(db, two.peerId, online());
      plane.clock.advance(1_000);
      losses.ask(network, [one.peerId]);
      await attempted(1);
      expect([sent, (await readRow(one))?.lost_at]).toEqual([[[[two.peerId, [one.peerId]]]], lost.lost_at]);
      await losses.stop();
    }));

  test.each(['lost_at', 'silent', 'offline'] as const)(
    'is no matter for a host that is %s itself, or for one that is',
    (how) =>
      withHosts(async ({ db, context, network, one, two }) => {
        const { losses, sent, attempted } = openLosses(context);
        const seen = new Date(plane.clock.now().getTime() - 91_000).toISOString();
        const states = {
          lost_at: [online(), { ...online(), lost_at: nowText() }],
          silent: [online(), { ...online(), last_seen: seen }],
          offline: [{ ...online(), announced: 'offline' as const }, online()],
        } as const;
        const [first, second] = states[how];
        await savePeerHealth(db, one.peerId, first);
        await savePeerHealth(db, two.peerId, second);
        losses.ask(network, [one.peerId]);
        await attempted(1);
        expect([sent, losses.isAwaited([one.peerId])]).toEqual([[], false]);
        await losses.stop();
      }),
  );

  test('for which no host could be asked is asked about later, also where hosts were asked about others', () =>
    withHosts(async ({ db, context, one, two, add }) => {
      const three = await add();
      const { losses, sent } = openLosses(context);
      const see = (path: string) =>
        savePeerHealth(
          db,
          three.peerId,
          online([
            { peer: one.peerId, path: 'direct' },
            { peer: two.peerId, path },
          ]),
        );
      await savePeerHealth(db, one.peerId, online());
      await savePeerHealth(db, two.peerId, online());
      // It never reached the second one.
      await see('never');
      const responses = [one, two].map((host) => {
        const response = Object.assign(new EventEmitter(), { destroyed: false, writableFinished: false });
        losses.watch(host, response as unknown as ServerResponse);
        return response;
      });
      for (const response of responses) response.emit('close');
      await eventually('it is asked about the first', () => sent.length === 1);
      await see('direct');
      await eventually('it is asked about the second', () => sent.length === 2);
      expect(sent).toEqual([[[three.peerId, [one.peerId]]], [[three.peerId, [two.peerId]]]]);
      await losses.stop();
    }));

  test('of a host that is back stays none where its network is judged meanwhile', () =>
    withHosts(async ({ db, context, network, one, two }) => {
      let requests = 1;
      const { losses, sent, attempted } = openLosses(context, { requestsOf: () => requests, expect: () => {} });
      for (const { peerId } of [one, two]) await savePeerHealth(db, peerId, online());
      const response = Object.assign(new EventEmitter(), { destroyed: false, writableFinished: false });
      losses.watch(one, response as unknown as ServerResponse);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      try {
        response.emit('close');
        vi.advanceTimersByTime(times.closedMs);
        losses.ask(network, [one.peerId]);
        requests += 1;
        vi.advanceTimersByTime(times.settleMs);
      } finally {
        vi.useRealTimers();
      }
      await attempted(1);
      await losses.stop();
      expect(sent).toEqual([]);
    }));

  test('that another process asked about is expected here, and not asked about again', () =>
    withHosts(async ({ db, context, network, one, two, add }) => {
      const expected: unknown[] = [];
      const presence = { requestsOf: () => 1, expect: (...facts: unknown[]) => void expected.push(facts) };
      // The clock of this process has another start than that of the database.
      const { losses, sent } = openLosses({ ...context, steadyNow: () => 5_000 }, presence);
      const [three, returned, offline] = [await add(), await add(), await add()];
      const earlier = (ms: number) => new Date(plane.clock.now().getTime() - ms).toISOString();
      const lost = { ...online(), last_seen: earlier(9_000), lost_at: earlier(2_000) };
      for (const { peerId } of [one, two]) await savePeerHealth(db, peerId, lost);
      await savePeerHealth(db, three.peerId, { ...lost, last_seen: null });
      await savePeerHealth(db, returned.peerId, { ...lost, last_seen: earlier(1_000) });
      await savePeerHealth(db, offline.peerId, { ...lost, announced: 'offline' });
      const response = Object.assign(new EventEmitter(), { destroyed: false });
      losses.watch(two, response as unknown as ServerResponse);
      await losses.noteAsked(network);
      const sorted = expected.toSorted((a, b) => String(a).localeCompare(String(b), 'en', { numeric: true }));
      expect(sorted).toEqual([
        [one.peerId, 3_000, false],
        [two.peerId, 3_000, true],
        [three.peerId, 3_000, false],
      ]);
      const isAwaited = ({ peerId }: PeerCaller) => losses.isAwaited([peerId]);
      expect([one, two, three, returned, offline].map(isAwaited)).toEqual([true, true, true, false, false]);
      losses.ask(network, [one.peerId, two.peerId, three.peerId]);
      await losses.stop();
      expect(sent).toEqual([]);
    }));

  test('of a host that makes a request while the network is read is none', () =>
    withHosts(async ({ db, context, one, two }) => {
      let [requests, sent] = [1, 0];
      const send = async () => {
        sent += 1;
      };
      const losses = new LostConnections(context, { requestsOf: () => requests, expect: () => {} }, { send }, times);
      const held = statements.hold(/ from "peer_health"/, 'after');
      await lose(db, one, two, () => losses);
      await held.reached;
      requests += 1;
      held.release();
      await losses.stop();
      expect([sent, (await readRow(one))?.lost_at]).toEqual([0, null]);
    }));
});

test('a message that is sent while others are taken ends the next wait, and is taken then', () =>
  withHosts(async ({ context, network, one }) =>
    // A connection of its own, because that of the first is held.
    withDatabase(plane.dataDir, async (other) => {
      const shared = { ...context };
      const messages = new PeerMessages(shared);
      const probe = (peer: number): Addressed[] => [[one.peerId, { kind: 'probe', data: { peers: [peer] } }]];
      await messages.send(network, probe(1));
      const inbox = messages.open(one, { kinds: ['probe'], hasReceipts: true });
      const held = statements.hold(/^select .* from "peer_messages" where "peer_id"/, 'after');
      const reading = inbox.read();
      await held.reached;
      Object.assign(shared, { db: other });
      await messages.send(network, probe(2));
      held.release();
      const { messages: read, receipt } = await reading;
      expect(read).toEqual([{ kind: 'probe', data: { peers: [1] } }]);
      await messages.acknowledge(one, `${receipt}`);
      let hasEnded = false;
      inbox.subscribe(() => {
        hasEnded = true;
      })();
      expect([hasEnded, (await inbox.read()).messages]).toEqual([true, [{ kind: 'probe', data: { peers: [2] } }]]);
    }),
  ));

test('a process whose claim of a delivery is over does not postpone the attempt of another one', () =>
  withHosts(async ({ db }) => {
    const [now, until, later] = ['2030-01-01T00:00:00.000Z', '2030-01-01T00:01:00.000Z', '2030-01-01T00:02:00.000Z'];
    const row = { event_id: 1, body: '{}', created_at: now, attempts: 0, next_at: now };
    await db.insertInto('deliveries').values(row).execute();
    const [first] = await claimDeliveries(db, { now, until, limit: 1 });
    const [second] = await claimDeliveries(db, { now: until, until: later, limit: 1 });
    if (first === undefined || second === undefined) throw new Error('each claims it');
    await postponeDelivery(db, first, '2030-01-01T00:00:30.000Z');
    const stored = await db.selectFrom('deliveries').select('next_at').where('id', '=', first.id).executeTakeFirst();
    expect([first.id, stored?.next_at]).toEqual([second.id, later]);
  }));
