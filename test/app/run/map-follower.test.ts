import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { StateUpdate } from '../../../src/app/reconcile/state-update.ts';
import { MapFollower } from '../../../src/app/run/map-follower.ts';
import type { PeerMessage } from '../../../src/contract/network.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused, Unreachable } from '../../../src/core/errors/index.ts';
import { features } from '../../../src/core/map/features.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Notes } from '../../../src/store/notes.ts';
import { dialled, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { joinedTo, mapAt, nonceOfMaps, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail, type MapReply } from '../simulated-service.ts';
import { passOf } from './pass-of.ts';

const other = peer(2, { endpoint: dialled(2) });
const first = mapAt('"1"', [other]);
const second = mapAt('"2"', [other, peer(3, { endpoint: dialled(3) })]);
const gone = (retryAfterMs: number | null = null) =>
  new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs });

interface Following {
  readonly simulated: SimulatedHost;
  readonly updates: StateUpdate[];
  /** The seconds at which there was an update. */
  readonly updatedAt: number[];
  /** The seconds of the requests. */
  readonly times: number[];
}

/**
 * Follows the map for `most` requests; each update is applied and saved, if `takes`. The service answers in the order of `answers`,
 * and repeats the last one.
 */
async function follow(
  answers: readonly MapReply[],
  most: number,
  {
    state = joinedTo(first),
    takes = true,
    holdsFor = 60,
    onIdle = async (_: SimulatedHost): Promise<void> => {},
    onNotes = (_: Partial<Notes>): void => {},
    onMessages = (_: readonly PeerMessage[]): void => {},
  } = {},
): Promise<Following> {
  const simulated = await SimulatedHost.with(state);
  const stop = new AbortController();
  const times: number[] = [];
  const { store } = simulated.tools;
  const { amendNotes } = store;
  store.amendNotes = async (link, part) => {
    onNotes(part);
    await amendNotes(link, part);
  };
  simulated.service.mapReplies = answers.map(
    (answer): MapReply =>
      async (revision, wait) => {
        times.push(simulated.seconds);
        if (times.length >= most) stop.abort();
        const reading = await answer(revision, wait);
        // A long poll without a change takes as long as was requested.
        if (reading.waited && reading.map === null) simulated.seconds += Math.min(wait?.seconds ?? 0, holdsFor);
        return reading;
      },
  );
  const updates: StateUpdate[] = [];
  const updatedAt: number[] = [];
  const apply = async (each: StateUpdate) => {
    updates.push(each);
    updatedAt.push(simulated.seconds);
    if (takes && each.map) await save(simulated, each.map);
    return takes;
  };
  await new MapFollower(simulated.tools, 'cpn0', 30, apply, () => onIdle(simulated), onMessages).run(stop.signal);
  return { simulated, updates, updatedAt, times };
}

async function save(simulated: SimulatedHost, map: NetworkMap): Promise<void> {
  const state = await simulated.state();
  await simulated.tools.store.write({ ...state, membership: { ...state.membership, map } });
}

const revisions = ({ updates }: Following) => updates.map(({ map }) => map?.revision);
const warnings = ({ simulated }: Following) => simulated.logged.filter(({ level }) => level === 'warn');
const pauses = ({ times }: Following) => times.slice(1).map((time, index) => time - (times[index] ?? 0));
/** `hold` for the seconds of a long poll whose end nothing else sets. */
const holdOf = (seconds: number | null | undefined) =>
  typeof seconds === 'number' && seconds >= 40 && seconds <= 45 ? 'hold' : seconds;
const notes = ({ simulated }: Following) => simulated.tools.store.readNotes('cpn0');

describe('a service with long polls', () => {
  it('is asked over the connection of the poll or confirmation before, but for the first request', async () => {
    const held = answerWith(first, true);
    expect((await follow([held], 1)).simulated.service.connectOptions).not.toHaveProperty('connection');
    expect((await follow([held], 2)).simulated.service.connectOptions).toMatchObject({ connection: 'keep' });
  });

  it('gets each message once, also if the reply to the request with its receipt is lost', async () => {
    const batch = { messages: [{ kind: 'return' as const, data: { peer: 2 } }], receipt: '7' };
    const withMessages: MapReply = async () => ({ map: null, waited: false, batch });
    const held = answerWith(first, true);
    const received: (readonly PeerMessage[])[] = [];
    const { simulated } = await follow([held, withMessages, fail(gone()), held, held], 5, {
      onMessages: (messages) => void received.push(messages),
    });
    const receipts = simulated.service.mapRequests.map(({ receipt }) => receipt);
    expect([receipts, received]).toEqual([[undefined, undefined, '7', '7', undefined], [batch.messages]]);
  });

  it('is asked again at once after messages: they are for moments soon to come', async () => {
    const batch = { messages: [{ kind: 'return' as const, data: { peer: 2 } }], receipt: '7' };
    const following = await follow([answerWith(first, true), async () => ({ map: null, waited: false, batch })], 60);
    expect(pauses(following).slice(1, 50)).toEqual(Array(49).fill(0));
  });

  describe('leaves its connection to a report', () => {
    const held = answerWith(first, true);

    it('after each long poll without a change, and begins the next one after it', async () => {
      let onIdle = 0;
      const asked: number[] = [];
      const { simulated } = await follow([held, held, answerWith(second, true), fail(gone()), held], 5, {
        onIdle: async (each) => {
          asked.push(each.service.mapRequests.length);
          await setImmediate();
          onIdle += each.service.mapRequests.length === asked.at(-1) ? 1 : 0;
        },
      });
      expect(simulated.service.mapRequests).toHaveLength(5);
      expect([asked, onIdle]).toEqual([[1, 2], 2]);
    });

    it('no longer than until a reset', async () => {
      const simulated = await SimulatedHost.with(joinedTo(first));
      const stop = new AbortController();
      simulated.service.mapReplies = [held];
      const never = () => {
        if (simulated.service.mapRequests.length === 2) stop.abort();
        else follower.reset();
        return new Promise<void>(() => {});
      };
      const follower = new MapFollower(simulated.tools, 'cpn0', 30, async () => true, never);
      await follower.run(stop.signal);
      expect(simulated.service.mapRequests).toHaveLength(2);
    });
  });

  it('has its update applied at once, while its notes are still being written', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const { store } = simulated.tools;
    const handed = Promise.withResolvers<void>();
    const order: string[] = [];
    let isNew = false;
    const amendNotes: typeof store.amendNotes = async (link, part) => {
      // A disk that takes a second, unless the update is applied before.
      if (isNew) await Promise.race([handed.promise, delay(1000)]);
      await store.amendNotes(link, part);
      if (isNew) order.push('noted');
    };
    simulated.service.mapReplies = [
      answerWith(first, true),
      (revision, wait) => {
        isNew = true;
        return answerWith(second, true)(revision, wait);
      },
    ];
    const stop = new AbortController();
    const apply = async () => {
      order.push('applied');
      handed.resolve();
      stop.abort();
      return true;
    };
    await new MapFollower({ ...simulated.tools, store: { ...store, amendNotes } }, 'cpn0', 30, apply).run(stop.signal);
    expect(order).toEqual(['applied', 'noted']);
    expect((await store.readNotes('cpn0')).sync.mode).toBe('push');
  });

  it('receives a first request without a wait, and from then on long polls for another revision', async () => {
    const following = await follow([answerWith(first, true), answerWith(second, true)], 3);
    expect(
      following.simulated.service.mapRequests.map(({ revision, wait }) => [revision, holdOf(wait?.seconds)]),
    ).toEqual([
      ['"1"', 0],
      ['"1"', 'hold'],
      ['"2"', 'hold'],
    ]);
    expect(revisions(following)).toEqual(['"2"']);
    expect((await notes(following)).sync).toMatchObject({ mode: 'push', error: null });
  });

  it('receives long polls too where the state has no revision yet: a request without one never waits', async () => {
    const unnamed = { ...first, revision: null };
    const following = await follow([answerWith(first), answerWith(second, true)], 3, { state: joinedTo(unnamed) });
    expect(
      following.simulated.service.mapRequests.map(({ revision, wait }) => [revision, holdOf(wait?.seconds)]),
    ).toEqual([
      [null, 0],
      ['"1"', 'hold'],
      ['"2"', 'hold'],
    ]);
    expect(Math.max(...pauses(following))).toBeLessThan(2);
  });

  it('receives the next request at once after a change', async () => {
    const maps = Array.from({ length: 5 }, (_, index) => answerWith(mapAt(`"${index + 2}"`, [other]), true));
    expect(pauses(await follow(maps, 5))).toEqual([0, 0, 0, 0]);
  });

  it('is not requested in a tight loop when it never waits, or always changes', async () => {
    let revision = 1;
    const restless: MapReply = () => {
      revision += 1;
      return { map: mapAt(`"${revision}"`, [other]), waited: true };
    };
    const following = await follow([restless], 25);
    // Ten at once, then one each second: messages come with them.
    expect(pauses(following).slice(10)).toEqual(Array(14).fill(1));
    expect(Math.max(...pauses(following))).toBe(1);
  });

  it('receives the next request later when the update could not be applied', async () => {
    const following = await follow([answerWith(second, true)], 6, { takes: false });
    expect(revisions(following).length).toBeGreaterThan(3);
    expect(Math.min(...pauses(following))).toBeGreaterThan(0.1);
  });
});

describe('a proxy in front of a service with long polls', () => {
  /** As Apache's mod_deflate does, it hides from the service which map the host has. */
  const repeats: MapReply = () => ({ map: first, waited: true, isRepeated: true });

  it('that makes each reply come at once, with the same map, is polled at the interval, and status is warned', async () => {
    const following = await follow([answerWith(first, true), repeats], 8);
    for (const pause of pauses(following).slice(1)) expect(pause).toBeGreaterThanOrEqual(24);
    expect((await notes(following)).sync).toMatchObject({ mode: 'poll', repliesEarly: true });
    const healed = await follow([answerWith(first, true), repeats, answerWith(first, true)], 4);
    expect((await notes(healed)).sync).toMatchObject({ mode: 'push' });
    expect((await notes(healed)).sync.repliesEarly).toBeUndefined();
  });

  it('that sends the same map as late as a poll would is no reason to poll', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const stop = new AbortController();
    const late: MapReply = async () => {
      simulated.seconds += 40;
      if (simulated.service.mapRequests.length >= 4) stop.abort();
      return { map: first, waited: true, isRepeated: true };
    };
    simulated.service.mapReplies = [answerWith(first, true), late];
    await new MapFollower(simulated.tools, 'cpn0', 30, async () => true).run(stop.signal);
    expect((await simulated.tools.store.readNotes('cpn0')).sync.mode).toBe('push');
  });

  const ended = () =>
    new Unreachable('https://203.0.113.99', 'it answered 502', {
      ...{ delivered: true, heard: true, retryAfterMs: null },
      waitEnded: true,
    });

  it('that ends long polls gets shorter ones, for an hour, and is no failure of the control plane', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const stop = new AbortController();
    const [limit, holds]: [number, number[]] = [12, []];
    simulated.service.mapReplies = [
      async (_, wait) => {
        const seconds = wait?.seconds ?? 0;
        if (seconds > 0) holds.push(seconds);
        simulated.seconds += Math.min(seconds, limit);
        if (simulated.seconds > 6_000) stop.abort();
        if (seconds > limit) throw ended();
        return { map: null, waited: true };
      },
    ];
    await new MapFollower(simulated.tools, 'cpn0', 30, async () => true).run(stop.signal);
    const [usual = 0, half, quarter, next] = holds;
    expect(holdOf(usual)).toBe('hold');
    expect([half, quarter, next]).toEqual([
      Math.floor(usual / 2),
      Math.floor(Math.floor(usual / 2) / 2),
      Math.floor(Math.floor(usual / 2) / 2),
    ]);
    expect(holds.filter((seconds) => holdOf(seconds) === 'hold')).toHaveLength(2);
    // After each one, a request without a wait shows that the control plane answers.
    const asked = simulated.service.mapRequests.map(({ wait }) => wait?.seconds);
    expect(asked.slice(0, 6)).toEqual([0, usual, 0, half, 0, quarter]);
    expect(simulated.logged.filter(({ level }) => level !== 'info')).toEqual([]);
    expect((await simulated.tools.store.readNotes('cpn0')).sync).toMatchObject({ mode: 'push', error: null });
  });

  it('is not what ended the long poll of a control plane that went down', async () => {
    const down = await follow([answerWith(first, true), fail(ended()), fail(gone()), fail(gone())], 4);
    expect(down.simulated.service.mapRequests.map(({ wait }) => holdOf(wait?.seconds))).toEqual([0, 'hold', 0, 0]);
    expect(warnings(down)).toHaveLength(1);
    expect((await notes(down)).sync.error).toContain('unreachable');
    const back = [answerWith(first, true), fail(ended()), fail(gone()), answerWith(first, true)];
    expect(holdOf((await follow(back, 5)).simulated.service.mapRequests[4]?.wait?.seconds)).toBe('hold');
  });

  it('that refuses changes alone is asked for whole maps for an hour, and status is warned', async () => {
    const wholeAt =
      (revision: string): MapReply =>
      () => ({
        ...{ map: mapAt(revision, [other]), waited: true },
        ...(revision === '"2"' && { refusesDeltas: true }),
      });
    const held: MapReply = answerWith(mapAt('"3"', [other]), true);
    const following = await follow([wholeAt('"2"'), wholeAt('"3"'), held], 100);
    const bases = following.simulated.service.mapRequests.map(({ base }) => base !== null);
    expect(bases.slice(0, 4)).toEqual([true, false, false, false]);
    const again = bases.indexOf(true, 1);
    expect((following.times[again] ?? 0) - (following.times[0] ?? 0)).toBeGreaterThanOrEqual(3_600);
    expect(warnings(following)).toMatchObject([{ message: expect.stringContaining('refuses deltas') }]);
    expect((await notes(following)).sync.refusesDeltas).toBeUndefined();
    const meanwhile = await follow([wholeAt('"2"'), wholeAt('"3"'), held], 5);
    expect((await notes(meanwhile)).sync.refusesDeltas).toBe(true);
  });

  describe('that removes headers', () => {
    /** Without Preference-Applied, and too soon to have been held. */
    const early: MapReply = () => ({ map: null, waited: false });

    it('of requests makes each reply come at once: status is warned, from the second one on', async () => {
      const following = await follow([answerWith(first, true), early], 8);
      for (const pause of pauses(following).slice(1)) expect(pause).toBeGreaterThanOrEqual(24);
      expect((await notes(following)).sync).toMatchObject({ mode: 'poll', repliesEarly: true });
      expect((await notes(await follow([answerWith(first, true), early], 2))).sync.repliesEarly).toBeUndefined();
    });

    it('of replies delays nothing: neither a first reply nor a change shows whether the service waits', async () => {
      const changed: MapReply = () => ({ map: second, waited: false });
      const following = await follow([early, answerWith(first, true), changed, answerWith(second, true)], 5);
      expect(Math.max(...[0, 2].map((index) => pauses(following)[index] ?? 99))).toBeLessThan(2);
      expect((await notes(following)).sync).toMatchObject({ mode: 'push' });
    });
  });
});

describe('a service without long polls', () => {
  const state = joinedTo(first, { features: features.filter((feature) => feature !== 'map-wait') });

  it('is polled at the interval, without a warning', async () => {
    const following = await follow([answerWith(first)], 6, { state });
    for (const pause of pauses(following)) {
      expect(pause).toBeGreaterThanOrEqual(24);
      expect(pause).toBeLessThanOrEqual(36);
    }
    expect((await notes(following)).sync.mode).toBe('poll');
    expect((await notes(following)).sync.repliesEarly).toBeUndefined();
  });

  it('gives no update when it sends the same map without a revision', async () => {
    const unnamed = { ...first, revision: null };
    const following = await follow([() => ({ map: unnamed, waited: false })], 3, { state: joinedTo(unnamed) });
    expect(following.simulated.service.mapRequests.map(({ revision }) => revision)).toEqual([null, null, null]);
  });
});

describe('a failure of the control plane', () => {
  it.each([
    ['unreachable', () => gone()],
    ['401', () => new Refused(401, 'reading', 'no', 'look')],
    ['404', () => new Refused(404, 'reading', 'no', 'look')],
  ])('(%s) is logged once, noted, and over when it answers', async (_, error) => {
    const failing = fail(error());
    const following = await follow([failing, failing, failing, answerWith(first, true), answerWith(first, true)], 5);
    expect(warnings(following)).toHaveLength(1);
    expect(following.simulated.logged.at(-1)).toMatchObject({
      level: 'info',
      message: 'the control plane answers again',
    });
    expect((await notes(following)).sync.error).toBeNull();
  });

  it('is not logged when the host leaves the network: the refusal comes before the state is removed', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const { store } = simulated.tools;
    const stop = new AbortController();
    const refused = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const leaving = store.lock(async () => {
      held.resolve();
      await refused.promise;
      await store.forget('cpn0', []);
    });
    await held.promise;
    simulated.service.mapReplies = [
      (revision, wait) => {
        refused.resolve();
        return fail(new Refused(401, 'reading', 'no', 'look'))(revision, wait);
      },
    ];
    const tools = {
      ...simulated.tools,
      async sleep() {
        stop.abort();
      },
    };
    await new MapFollower(tools, 'cpn0', 30, async () => true).run(stop.signal);
    await leaving;
    expect(simulated.logged.filter(({ level }) => level === 'warn')).toEqual([]);
    expect((await store.readNotes('cpn0')).sync.error).toBeNull();
  });

  it('is noted with its cause', async () => {
    const following = await follow([fail(gone())], 3);
    expect((await notes(following)).sync.error).toContain('unreachable');
    expect(revisions(following)).toEqual([]);
  });

  it.each([
    [401, 'token'],
    [403, 'forbidden'],
    [404, 'gone'],
    [422, null],
  ])(
    'is a refusal of its own where the answer is %i (%s), also while the service is unreachable later',
    async (status, refused) => {
      const refusing = fail(new Refused(status, 'reading', 'no', 'look'));
      for (const answers of [[refusing], [refusing, fail(gone())]]) {
        const following = await follow(answers, 3);
        expect((await notes(following)).sync.refused).toBe(refused);
      }
      expect((await notes(await follow([refusing, answerWith(first, true)], 3))).sync.refused).toBeNull();
    },
  );

  it('is detected after a few attempts, because more requests follow', async () => {
    const { simulated } = await follow([fail(gone())], 1);
    expect(simulated.service.connectOptions).toEqual({ deadlineMs: 10_000, attempts: 3 });
  });

  it('is noted with the time of its first failure and of the last success before that', async () => {
    const refused = fail(new Refused(403, 'reading', 'no', 'look'));
    const failures: unknown[] = [];
    const { times } = await follow([fail(gone(60_000)), refused, answerWith(first), fail(gone()), refused], 6, {
      onNotes: ({ daemonFailure }) => failures.push(daemonFailure),
    });
    const [failed, , succeeded, again] = times.map((at) => new Date(1_700_000_000_000 + at * 1000).toISOString());
    const error = expect.any(String);
    expect(failures).toEqual([
      { error, since: failed, lastSuccess: null },
      { error, since: failed, lastSuccess: null },
      null,
      { error, since: again, lastSuccess: succeeded },
      { error, since: again, lastSuccess: succeeded },
    ]);
  });

  it('is followed by a request without a wait, and then by long polls again', async () => {
    const held = answerWith(first, true);
    const { simulated } = await follow([held, fail(gone()), held, held], 4);
    expect(simulated.service.mapRequests.map(({ wait }) => holdOf(wait?.seconds))).toEqual([0, 'hold', 0, 'hold']);
  });

  it('that follows a success is followed by the pause after a first one', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999);
    const failing = fail(gone());
    const following = await follow([failing, failing, failing, answerWith(first, true), failing], 6);
    vi.restoreAllMocks();
    const [once = 0, twice = 0, , , again = 0] = pauses(following);
    expect(twice).toBeGreaterThan(1.5 * once);
    expect(again).toBeCloseTo(once);
  });

  it('that is a bug leaves the pause alone when a pass then finds another revision', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const stop = new AbortController();
    simulated.service.mapReplies = [fail(new TypeError('undefined is not a function'))];
    const sleep = async (_: number, signal?: AbortSignal) => {
      // The first pause finds the identity of the request alone.
      follower.onPass(passOf({ state: joinedTo(second) }));
      expect(signal?.aborted).toBe(false);
      stop.abort();
    };
    const follower = new MapFollower({ ...simulated.tools, sleep }, 'cpn0', 30, async () => true);
    await follower.run(stop.signal);
    expect(simulated.service.mapRequests).toHaveLength(1);
  });

  it('is followed by pauses up to the interval', async () => {
    const following = await follow([fail(gone())], 40);
    expect(Math.max(...pauses(following))).toBeLessThanOrEqual(31);
    expect(Math.min(...pauses(following))).toBeGreaterThanOrEqual(0.2);
  });

  it('is followed by the pause that a gateway requests which ended a long poll', async () => {
    const reason = { delivered: true, heard: true, retryAfterMs: 120_000, waitEnded: true };
    const cut = fail(new Unreachable('https://203.0.113.99', 'cut', reason));
    const following = await follow([answerWith(first, true), cut, answerWith(first, true)], 3);
    expect(pauses(following)[1]).toBeGreaterThanOrEqual(120);
  });

  it('is followed by requests although the state cannot be read in the pause', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const stop = new AbortController();
    const { store } = simulated.tools;
    const { read } = store;
    let isUnreadable = false;
    let rests = 0;
    store.read = async (link) => {
      if (!isUnreadable) return read(link);
      isUnreadable = false;
      throw new TypeError('damaged');
    };
    simulated.service.mapReplies = [
      fail(new Refused(401, 'reading', 'no', 'look')),
      (revision, wait) => {
        stop.abort();
        return answerWith(first, true)(revision, wait);
      },
    ];
    const sleep: typeof simulated.tools.sleep = async (milliseconds, signal) => {
      rests += 1;
      isUnreadable = rests === 1;
      await simulated.tools.sleep(milliseconds, signal);
    };
    const follower = new MapFollower({ ...simulated.tools, sleep }, 'cpn0', 30, async () => true);
    await follower.run(stop.signal);
    expect(simulated.service.mapRequests).toHaveLength(2);
  });

  it('is followed by the pause that the service requests', async () => {
    const following = await follow([fail(gone(120_000)), answerWith(first, true)], 2);
    expect(pauses(following)[0]).toBeGreaterThanOrEqual(120);
  });
});

describe('an answer that would empty the tunnel', () => {
  const empty: [string, NetworkMap][] = [
    ['no other peer', mapAt('"2"', [])],
    ['not this host', { ...first, revision: '"2"', peers: [other] }],
    ['no peer', { ...first, revision: '"2"', peers: [] }],
  ];

  it.each(empty)('(%s) is applied when a second one, an interval later, is the same', async (_, map) => {
    const following = await follow([answerWith(map, true)], 4);
    expect(
      following.simulated.service.mapRequests.map(({ revision, wait }) => [revision, holdOf(wait?.seconds)]),
    ).toEqual([
      ['"1"', 0],
      ['"2"', 30],
      ['"1"', 'hold'],
      ['"2"', 'hold'],
    ]);
    expect(revisions(following)).toEqual(['"2"']);
    expect((following.updatedAt[0] ?? 0) - (following.times[0] ?? 0)).toBeGreaterThanOrEqual(30);
    expect(warnings(following)).toHaveLength(1);
    expect((await notes(following)).held).toBeNull();
  });

  it.each(empty)('(%s) is dropped when the next one differs', async (_, map) => {
    const following = await follow([answerWith(map, true), answerWith(first, true)], 4);
    expect((await following.simulated.state()).membership.map).toEqual(first);
    expect(await notes(following)).toMatchObject({ held: null, sync: { error: null } });
  });

  it('is dropped at once for a map that has peers again', async () => {
    const third = mapAt('"3"', [other]);
    const following = await follow([answerWith(mapAt('"2"', []), true), answerWith(third, true)], 3);
    expect(following.updatedAt).toEqual([following.times[0]]);
    expect(revisions(following)).toEqual(['"3"']);
    expect(await notes(following)).toMatchObject({ held: null, sync: { error: null } });
  });

  it('that comes again after such a map is held like the first one', async () => {
    const empty = answerWith(mapAt('"2"', []), true);
    const third: MapReply = () => ({ map: mapAt('"3"', [other]), waited: true });
    const unchanged: MapReply = () => ({ map: null, waited: true });
    const following = await follow([empty, third, unchanged, empty], 4);
    expect(revisions(following)).toEqual(['"3"']);
    expect((await notes(following)).held).not.toBeNull();
  });

  it('is not applied sooner when the service ends long polls early', async () => {
    const following = await follow([answerWith(mapAt('"2"', []), true)], 34, { holdsFor: 1 });
    expect(revisions(following)).toEqual(['"2"']);
    expect((following.updatedAt[0] ?? 0) - (following.times[0] ?? 0)).toBeGreaterThanOrEqual(30);
  });

  it.each([
    ['cannot wait', mapAt('"2"', []), false],
    ['has no revisions', mapAt(null, []), true],
  ])('is requested again at the interval when the service %s', async (_, map, waits) => {
    const described = features.filter((feature) => waits || feature !== 'map-wait');
    const state = joinedTo(first, { features: described });
    const following = await follow([answerWith(map, waits)], 2, { state });
    expect(following.simulated.service.mapRequests.map(({ revision }) => revision)).toEqual(['"1"', '"1"']);
    expect(pauses(following)[0]).toBeGreaterThanOrEqual(24);
  });

  it('is in the notes as long as it is held', async () => {
    const following = await follow([answerWith(mapAt('"2"', []), true)], 1);
    const { held, sync } = await notes(following);
    expect(held).toEqual({ since: 1000 });
    expect(sync.error).toContain('lists no other peer');
  });
});

describe('a host that joins again', () => {
  const rejoined = joinedTo(first, {
    membership: { ...joinedTo(first).membership, accessToken: new Secret('cpp_y') },
  });

  it('is detected in the pause after a refusal, without an event of the host', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const stop = new AbortController();
    const follower = new MapFollower(simulated.tools, 'cpn0', 3600, async () => true);
    let refusedAt = 0;
    simulated.service.mapReplies = [
      async (revision, wait) => {
        refusedAt = simulated.seconds;
        await simulated.tools.store.write(rejoined);
        return fail(new Refused(401, 'reading', 'no', 'look'))(revision, wait);
      },
      (revision, wait) => {
        stop.abort();
        return answerWith(first, true)(revision, wait);
      },
    ];
    await follower.run(stop.signal);
    expect(simulated.seconds - refusedAt).toBeLessThan(10);
  });

  it('sends a request to the new address of the control plane as soon as another process saved it', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const { store } = simulated.tools;
    const stop = new AbortController();
    const asked: (string | undefined)[] = [];
    const service = { url: 'https://203.0.113.98', insecureHttp: false };
    simulated.service.mapReplies = [
      answerWith(first, true),
      (_, wait) =>
        new Promise((_, reject) => {
          asked.push(simulated.service.knownService?.service.url);
          wait?.signal?.addEventListener('abort', () => reject(new Error('ended')));
          if (asked.length === 1) void store.lock(async () => store.write({ ...(await simulated.state()), service }));
          else stop.abort();
        }),
    ];
    await new MapFollower(simulated.tools, 'cpn0', 3600, async () => true).run(stop.signal);
    expect(asked).toEqual(['https://203.0.113.99', service.url]);
  });

  it('ends a long poll with the former token', async () => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    const stop = new AbortController();
    const follower = new MapFollower(simulated.tools, 'cpn0', 3600, async () => true);
    simulated.service.mapReplies = [
      answerWith(first, true),
      (_, wait) =>
        new Promise((_, reject) => {
          wait?.signal?.addEventListener('abort', () => reject(new Error('ended')));
          follower.onPass(passOf({ state: joinedTo(first) }));
          expect(wait?.signal?.aborted).toBe(false);
          follower.onPass(passOf({ state: rejoined }));
        }),
      (revision, wait) => {
        stop.abort();
        return answerWith(first, true)(revision, wait);
      },
    ];
    await follower.run(stop.signal);
    expect(simulated.service.mapRequests).toHaveLength(3);
    expect(simulated.logged).toEqual([]);
  });
});

it('a state that was restored from an older copy ends the long poll for the newer revision', async () => {
  const simulated = await SimulatedHost.with(joinedTo(second));
  const stop = new AbortController();
  const follower = new MapFollower(simulated.tools, 'cpn0', 3600, async () => true);
  simulated.service.mapReplies = [
    answerWith(second, true),
    (_, wait) =>
      new Promise((_, reject) => {
        wait?.signal?.addEventListener('abort', () => reject(new Error('ended')));
        follower.onPass(passOf({ state: joinedTo(second) }));
        expect(wait?.signal?.aborted).toBe(false);
        void simulated.tools.store
          .write(joinedTo(first))
          .then(() => follower.onPass(passOf({ state: joinedTo(first) })));
      }),
    (revision, wait) => {
      stop.abort();
      return answerWith(second, true)(revision, wait);
    },
  ];
  await follower.run(stop.signal);
  expect(simulated.service.mapRequests.map(({ revision }) => revision)).toEqual(['"2"', '"2"', '"1"']);
});

it('a host without a token sends no request', async () => {
  const state = joinedTo(first);
  const alone = { ...state, membership: { ...state.membership, accessToken: null } };
  const simulated = await SimulatedHost.with(alone);
  const stop = new AbortController();
  const following = new MapFollower(simulated.tools, 'cpn0', 30, async () => true).run(stop.signal);
  await eventually('some intervals', () => simulated.seconds > 1_100);
  expect(simulated.service.mapRequests).toEqual([]);
  // After it left and joined again, it has one.
  simulated.service.mapReplies = [answerWith(first)];
  await simulated.tools.store.write(state);
  await eventually('a question', () => simulated.service.mapRequests.length > 0);
  stop.abort();
  await following;
});

it('a reset sends a request at once, whatever the pause', async () => {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [other, self])));
  const stop = new AbortController();
  const follower = new MapFollower(simulated.tools, 'cpn0', 30, async () => true);
  let waiting = 0;
  simulated.service.mapReplies = [
    (_, wait) =>
      new Promise((resolve, reject) => {
        if (wait?.seconds === 0) return resolve({ map: null, waited: true });
        waiting += 1;
        wait?.signal?.addEventListener('abort', () => reject(new Error('ended')));
        if (waiting === 1) follower.reset();
        else stop.abort();
      }),
  ];
  await follower.run(stop.signal);
  expect(simulated.service.mapRequests.map(({ wait }) => holdOf(wait?.seconds))).toEqual([0, 'hold', 0, 'hold']);
});

describe('a deleted network', () => {
  const stated = (nonce = nonceOfMaps) =>
    fail(new Refused(410, 'it', 'the network was deleted', null, { deleted: { id: first.id ?? 0, nonce } }));
  const deletions = ({ updates }: Following) => updates.map(({ deletedAt }) => deletedAt !== undefined);

  it('counts as deleted after a second statement, 30 s after the first one', async () => {
    const done = await follow([stated()], 3);
    expect(deletions(done)).toEqual([true]);
    expect(pauses(done)[0]).toBeGreaterThanOrEqual(30);
    expect(pauses(done)[0]).toBeLessThan(32);
    expect((await notes(done)).sync.refused).toBe('gone');
  });

  it('is requested again after a growing pause where its pass failed', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999);
    const done = await follow([stated()], 5, { takes: false });
    vi.restoreAllMocks();
    expect(deletions(done).length).toBeGreaterThan(1);
    expect(pauses(done)[1]).toBeGreaterThan(1);
  });

  it('is confirmed at once by a request after the tunnel is down', async () => {
    const done = await follow([stated()], 3);
    expect(pauses(done)[1]).toBeLessThan(1);
  });

  it.each<[string, readonly MapReply[]]>([
    ['one statement', [stated(), fail(gone())]],
    ['statements with a map in between', [stated(), answerWith(second), stated()]],
    ['a statement after a map that empties the tunnel', [answerWith(mapAt('"2"', [])), stated(), fail(gone())]],
    ['statements with another nonce', [stated('AAAAAAAAAAAA')]],
  ])('is not one with %s', async (_, answers) => {
    expect(deletions(await follow(answers, answers.length === 1 ? 4 : answers.length))).not.toContain(true);
  });

  it('is one where the second statement comes after other failures', async () => {
    expect(deletions(await follow([stated(), fail(gone()), stated()], 12))).toContain(true);
  });

  it('is one where another refusal came before, which is logged as the same failure', async () => {
    const refused = fail(new Refused(404, 'reading', 'no', 'look'));
    expect(deletions(await follow([refused, stated()], 8))).toContain(true);
  });

  it('is requested whole from then on, and is back with the first map', async () => {
    const deletion = { at: '2030-01-01T00:00:00.000Z', resumes: true };
    const state = { ...joinedTo(first), enabled: false, deletion };
    const done = await follow([stated(), answerWith(first)], 2, { state });
    expect(done.simulated.service.mapRequests.map(({ revision }) => revision)).toEqual([null, null]);
    expect(done.updates).toMatchObject([{ isBack: true, map: { revision: '"1"' } }]);
  });
});

it('a host that joined before there were nonces requests the whole map for one, once', async () => {
  const { nonce: _, ...before } = first;
  const { simulated } = await follow([answerWith(before, true)], 3, { state: joinedTo(before) });
  expect(simulated.service.mapRequests.map(({ revision }) => revision)).toEqual([null, '"1"', '"1"']);
});
