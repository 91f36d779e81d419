import { describe, expect, it } from 'vitest';
import type { PathState } from '../../../../src/contract/health.ts';
import {
  judgePeers,
  judgeRoute,
  type ObservedConnector,
  type ObservedPeer,
  type RouteVote,
} from '../../../../src/core/health/verdict/verdict.ts';

const now = 10_000;
const longAgo = 0;

interface Facts {
  /** Seconds since the last request; null for none at all. */
  readonly silent?: number | null;
  readonly announced?: 'online' | 'offline' | null;
  readonly paths?: Readonly<Record<number, PathState>>;
  /** Seconds since its connection was lost. */
  readonly lost?: number | null;
  /** Of each peer that it probed: whether it answered, and how many seconds ago. */
  readonly probes?: Readonly<Record<number, readonly [answered: boolean, ago: number]>>;
}

function peer(
  id: number,
  { silent = 10, announced = 'online', paths = {}, lost = null, probes = {} }: Facts = {},
): ObservedPeer {
  return {
    id,
    lostAt: lost === null ? null : now - lost,
    probes: new Map(Object.entries(probes).map(([to, [answered, ago]]) => [Number(to), { answered, at: now - ago }])),
    lastSeen: silent === null ? null : now - silent,
    announced,
    paths: new Map(Object.entries(paths).map(([to, path]) => [Number(to), path])),
  };
}

function judge(peers: readonly ObservedPeer[], id: number, since = longAgo) {
  return judgePeers(peers, now, since).get(id);
}

describe('judgePeers', () => {
  it.each([
    ['is in touch', [peer(1), peer(2, { paths: { 1: 'down' } })], 'online'],
    ['is silent, and a witness reaches it', [peer(1, { silent: 300 }), peer(2, { paths: { 1: 'direct' } })], 'online'],
    ['is silent, and no witness reaches it', [peer(1, { silent: 300 }), peer(2, { paths: { 1: 'down' } })], 'offline'],
    ['is silent, and no host can tell', [peer(1, { silent: 300 }), peer(2)], 'offline'],
    ['is silent, and alone', [peer(1, { silent: 300 })], 'offline'],
    ['was never seen', [peer(1, { silent: null, announced: null }), peer(2)], 'unknown'],
    [
      'was never seen, and a witness reaches it',
      [peer(1, { silent: null, announced: null }), peer(2, { paths: { 1: 'direct' } })],
      'online',
    ],
    [
      'is silent, and the only witness that reaches it is silent too',
      [peer(1, { silent: 300 }), peer(2, { silent: 300, paths: { 1: 'direct' } }), peer(3)],
      'offline',
    ],
    ['is silent like all others', [peer(1, { silent: 300 }), peer(2, { silent: 300 })], 'unknown'],
    [
      'is the last of which something was received',
      [peer(1, { silent: 300 }), peer(2, { silent: 9_000, announced: 'offline' })],
      'offline',
    ],
  ] as const)('a peer that %s', (_, peers, state) => {
    expect(judge(peers, 1)?.state).toBe(state);
  });

  const lost = { silent: 30, lost: 20 };
  const silence = { 1: [false, 10] } as const;
  const answer = { 1: [true, 10] } as const;
  it.each([
    ['no host was asked', [peer(1, lost), peer(2)], 'online'],
    [
      'no host answered the question, and one had an old session',
      [peer(1, lost), peer(2, { paths: { 1: 'down' } })],
      'online',
    ],
    ['a host got no answer', [peer(1, lost), peer(2, { probes: silence })], 'offline'],
    ['a host got an answer', [peer(1, lost), peer(2, { probes: answer })], 'online'],
    [
      'one of two hosts got an answer',
      [peer(1, lost), peer(2, { probes: silence }), peer(3, { probes: answer })],
      'online',
    ],
    [
      'a host got no answer, and another one reports a session from before',
      [peer(1, lost), peer(2, { probes: silence }), peer(3, { paths: { 1: 'direct' } })],
      'offline',
    ],
    ['the probe was before that', [peer(1, lost), peer(2, { probes: { 1: [false, 25] } })], 'online'],
    ['a host answered before it can have probed', [peer(1, lost), peer(2, { probes: { 1: [false, 19] } })], 'online'],
    ['the host that got no answer lost its own', [peer(1, lost), peer(2, { ...lost, probes: silence })], 'online'],
    [
      'a host got an answer, and the control plane none for minutes',
      [peer(1, { silent: 300, lost: 290 }), peer(2, { probes: answer })],
      'online',
    ],
    [
      'the last answer is older than a minute',
      [peer(1, { silent: 300, lost: 290 }), peer(2, { probes: { 1: [true, 61] } })],
      'offline',
    ],
  ] as const)('a peer that lost its connection, where %s', (_, peers, state) => {
    expect(judge(peers, 1)?.state).toBe(state);
  });

  it.each([
    ['90 s', [peer(1, { silent: 90 }), peer(2)], longAgo, 'online'],
    ['91 s', [peer(1, { silent: 91 }), peer(2)], longAgo, 'offline'],
    ['90 s after a start', [peer(1, { silent: 300 }), peer(2)], now - 90, 'online'],
    ['91 s after a start', [peer(1, { silent: 300 }), peer(2)], now - 91, 'offline'],
    ['after a start, never stated to be online', [peer(1, { silent: 300, announced: 'offline' })], now - 60, 'offline'],
    ['after a start, and never seen', [peer(1, { silent: null, announced: null })], now - 60, 'unknown'],
    ['for good, once stated to be online', [peer(1, { silent: null }), peer(2)], longAgo, 'offline'],
    ['for good, once stated to be offline', [peer(1, { silent: null, announced: 'offline' })], longAgo, 'offline'],
  ] as const)('a peer that was not seen for %s', (_, peers, since, state) => {
    expect(judge(peers, 1, since)?.state).toBe(state);
  });

  it.each([
    ['an answer a minute ago', { 1: [true, 60] }, 'online'],
    ['an answer more than a minute ago', { 1: [true, 61] }, 'offline'],
  ] as const)('of probes count those of the last minute: %s', (_, probes, state) => {
    expect(judge([peer(1, { silent: 300, lost: 290 }), peer(2, { probes })], 1)?.state).toBe(state);
  });

  it.each([
    ['an answer at that moment', { 1: [true, 20] }, 1, 1],
    ['an answer a second later', { 1: [true, 19] }, 1, 1],
    ['an answer before', { 1: [true, 21] }, 0, 0],
    ['silence after the shortest probe', { 1: [false, 17] }, 0, 1],
    ['silence sooner than a probe takes', { 1: [false, 18] }, 0, 0],
  ] as const)('of probes count those since the connection was lost: %s', (_, probes, reachableBy, witnesses) => {
    expect(judge([peer(1, lost), peer(2, { probes })], 1)).toMatchObject({ reachableBy, witnesses });
  });

  it('has no witness in itself, nor in a host that is dead by probes', () => {
    expect(judge([peer(1, { silent: 300, paths: { 1: 'direct' } }), peer(2)], 1)).toMatchObject({ witnesses: 0 });
    expect(judge([peer(1, { paths: { 1: 'direct' } })], 1)).toMatchObject({ reachableBy: 0, witnesses: 0 });
    const dead = peer(3, { ...lost, paths: { 1: 'direct' } });
    const peers = [peer(1, { silent: 300 }), peer(2, { probes: { 3: [false, 10] } }), dead];
    expect(judge(peers, 3)?.state).toBe('offline');
    expect(judge(peers, 1)).toMatchObject({ state: 'offline', witnesses: 0 });
  });

  it('a peer that made a request since it lost its connection is online, whatever hosts found', () => {
    expect(judge([peer(1, { silent: 1 }), peer(2, { probes: silence })], 1)).toMatchObject({
      state: 'online',
      why: 'it reaches the control plane',
    });
  });

  it('a witness that is cut off alone changes nothing', () => {
    const witness = peer(3, { paths: { 1: 'down', 2: 'down' } });
    const verdicts = judgePeers(
      [peer(1), peer(2, { silent: 300 }), witness, peer(4, { paths: { 2: 'direct' } })],
      now,
      longAgo,
    );
    expect([...verdicts.values()].map(({ state }) => state)).toEqual(['online', 'online', 'online', 'online']);
    expect(verdicts.get(2)).toMatchObject({ reachableBy: 1, witnesses: 2 });
  });

  it('after a restart of the control plane, a silent peer stays what it was until it had time for a request', () => {
    const peers = [peer(1, { silent: 300 }), peer(2, { silent: 300, announced: 'offline' })];
    const early = judgePeers(peers, now, now - 60);
    expect([early.get(1)?.state, early.get(2)?.state]).toEqual(['online', 'offline']);
    expect(judge([...peers, peer(3)], 1, now - 91)?.state).toBe('offline');
  });

  it.each(['relayed', 'stale'] as const)('a %s path is no observation of the peer', (path) => {
    expect(judge([peer(1), peer(2, { paths: { 1: path } })], 1)).toMatchObject({ reachableBy: 0, witnesses: 0 });
  });

  it('says why', () => {
    const witnesses = [peer(2, { paths: { 1: 'direct' } }), peer(3, { paths: { 1: 'never' } })];
    expect(judge([peer(1, { silent: 600 }), ...witnesses], 1)?.why).toBe(
      'not seen for 10 min, but 1 of 2 hosts reaches it',
    );
    const joined = peer(1, { silent: null, announced: null });
    expect(judge([joined, ...witnesses], 1)?.why).toBe(
      'no request on record since it joined, but 1 of 2 hosts reaches it',
    );
    expect(judge([joined, peer(2)], 1)?.why).toBe('no request on record since it joined; no other host reports on it');
  });
});

const connector = (id: number, facts: Partial<ObservedConnector> = {}): ObservedConnector => ({
  ...{ id, state: 'online', isWithdrawn: false, isLanDown: false, hasAnswered: true },
  ...facts,
});

const statedUp = { now, isStatedUp: true };

/** Judges a route by hosts that use these connectors; those that find none lost theirs long ago. */
function judgeRouteBy(connectors: readonly ObservedConnector[], choices: readonly (number | null)[]) {
  const votes = choices.map((id): RouteVote => ({ connector: id, lostAt: id === null ? longAgo : null }));
  return judgeRoute(connectors, votes, statedUp);
}

describe('judgeRoute', () => {
  it.each([
    ['no connector', [], []],
    ['only offline connectors', [connector(1, { state: 'offline' })], [1]],
    ['only connectors without it', [connector(1, { isWithdrawn: true })], [1]],
    ['no LAN that answers', [connector(1, { isLanDown: true }), connector(2, { state: 'offline' })], [1]],
    ['no connector that answers a host', [connector(1), connector(2)], [null, null]],
  ] as const)('with %s it is dead', (_, connectors, choices) => {
    expect(judgeRouteBy(connectors, choices)).toMatchObject({ state: 'dead', connector: null, standby: [] });
  });

  it('has the connector that most hosts use, and the others as standby in their order', () => {
    const connectors = [connector(1), connector(2), connector(3)];
    expect(judgeRouteBy(connectors, [2, null, 2, 1])).toEqual({
      ...{ state: 'up', connector: 2, standby: [1, 3], neverAnswered: [] },
      why: '2 of 4 hosts use it',
    });
    expect(judgeRouteBy(connectors, [3, 1])).toMatchObject({ connector: 1 });
  });

  it('has the first connector in use where hosts spread, and how many hosts use each', () => {
    const votes = [2, 3, 3, 3].map((id): RouteVote => ({ connector: id, lostAt: null }));
    expect(judgeRoute([connector(1), connector(2), connector(3)], votes, { ...statedUp, isSpread: true })).toEqual({
      ...{ state: 'up', connector: 2, standby: [1, 3], neverAnswered: [], why: '1 of 4 hosts uses it' },
      shares: [
        { connector: 1, hosts: 0 },
        { connector: 2, hosts: 1 },
        { connector: 3, hosts: 3 },
      ],
    });
  });

  it('has the first connector that is online where no host reports one', () => {
    const connectors = [connector(1, { state: 'unknown' }), connector(2), connector(3)];
    expect(judgeRouteBy(connectors, [])).toMatchObject({ state: 'up', connector: 2, standby: [1, 3] });
    expect(judgeRouteBy([connector(1, { state: 'unknown' })], [])).toMatchObject({ state: 'unknown', connector: null });
  });

  it('is unknown where the only host that uses it has never reached a connector of it', () => {
    const verdict = judgeRoute([connector(1), connector(2)], [], { ...statedUp, isUnreached: true });
    expect(verdict).toMatchObject({ state: 'unknown', connector: null, standby: [1, 2] });
    expect(verdict.why).toBe('the only host that uses it has never reached a connector of it');
    expect(judgeRoute([connector(1, { state: 'offline' })], [], { ...statedUp, isUnreached: true }).state).toBe('dead');
  });

  it('is up where a host uses it, also one that has never reached the others', () => {
    const verdict = judgeRoute([connector(1)], [{ connector: 1, lostAt: null }], { ...statedUp, isUnreached: true });
    expect(verdict).toMatchObject({ state: 'up', connector: 1 });
    for (const isStatedUp of [true, false])
      expect(judgeRoute([connector(1)], [], { now, isStatedUp, isUnreached: true }).state).toBe('unknown');
  });

  it.each([
    ['none', [], 'no connector serves it'],
    [
      'one that withdrew it',
      [connector(1, { isWithdrawn: true, isLanDown: true })],
      'each of its connectors has taken it out of service',
    ],
    [
      'one that is offline, its LAN down before',
      [connector(1, { isLanDown: true, state: 'offline' })],
      'its LAN does not answer at any of its connectors',
    ],
    ['one that is offline', [connector(1, { state: 'offline' })], 'each of its connectors is offline'],
  ] as const)('is dead for the first reason that holds, of connectors: %s', (_, connectors, why) => {
    expect(judgeRouteBy(connectors, [null])).toMatchObject({ state: 'dead', why });
  });

  it('names each connector that never answered, in service or not', () => {
    const facts = { hasAnswered: false };
    const connectors = [connector(1), connector(2, facts), connector(3, { ...facts, isWithdrawn: true })];
    expect(judgeRouteBy(connectors, [1]).neverAnswered).toEqual([2, 3]);
    expect(judgeRouteBy([connector(4, { ...facts, state: 'offline' })], [null]).neverAnswered).toEqual([4]);
  });

  it('counts no vote for a connector that cannot serve it', () => {
    const connectors = [connector(1, { state: 'offline' }), connector(2), connector(3)];
    expect(judgeRouteBy(connectors, [1, 1, 3])).toMatchObject({ connector: 3, why: '1 of 3 hosts uses it' });
    expect(judgeRouteBy(connectors, [9])).toMatchObject({
      state: 'up',
      connector: 2,
      why: 'no host reports that it uses it',
    });
  });

  it('has a connector that never answered for no standby', () => {
    const silent = connector(2, { state: 'unknown', hasAnswered: false });
    expect(judgeRouteBy([connector(1), silent], [1])).toMatchObject({ connector: 1, standby: [], neverAnswered: [2] });
    expect(judgeRouteBy([silent, connector(3)], [])).toMatchObject({ connector: 3, standby: [], neverAnswered: [2] });
    expect(judgeRouteBy([silent], [])).toMatchObject({ state: 'unknown', standby: [], neverAnswered: [2] });
  });

  it('does not move to a connector that is on its way out', () => {
    expect(judgeRouteBy([connector(1, { isWithdrawn: true }), connector(2)], [1])).toMatchObject({
      ...{ state: 'up', connector: 2 },
    });
  });

  const none = (...ago: readonly number[]) => ago.map((each): RouteVote => ({ connector: null, lostAt: now - each }));
  const why = 'no host finds a connector of it that answers';
  it.each([
    ['two hosts lost their connectors a moment ago', none(0.3, 1.6), 1.7],
    ['one of them did so a moment ago', none(60, 0.5), 1.5],
    ['a host joined a moment ago, and finds none either', none(1.9, 1.8, 0), 2],
  ] as const)('is unknown for two seconds where %s', (_, votes, deadIn) => {
    const verdict = judgeRoute([connector(1)], votes, statedUp);
    expect(verdict).toMatchObject({ state: 'unknown', connector: null, why: `${why}, for less than 2 s` });
    expect(verdict.deadIn).toBeCloseTo(deadIn, 6);
    const later = judgeRoute([connector(1)], votes, { ...statedUp, now: now + deadIn + 0.001 });
    expect(later).toMatchObject({ state: 'dead', why });
  });

  it.each([
    ['all did so two seconds ago', none(2, 60), statedUp],
    ['it was never stated to be up, or is stated to be dead', none(0), { now, isStatedUp: false }],
    ['an instant is unknown, from an earlier version', [{ connector: null, lostAt: null }], statedUp],
    ['an instant is that of a clock that was ahead', none(-3600), statedUp],
  ] as const)('is dead at once where %s', (_, votes, context) => {
    const verdict = judgeRoute([connector(1)], votes, context);
    expect(verdict).toMatchObject({ state: 'dead', why });
    expect(verdict).not.toHaveProperty('deadIn');
  });

  it('is dead at once for any other reason, whatever hosts find', () => {
    for (const facts of [{ state: 'offline' }, { isWithdrawn: true }, { isLanDown: true }] as const)
      expect(judgeRoute([connector(1, facts)], none(0), statedUp).state).toBe('dead');
  });

  it('is dead after two seconds in which no host had a connector, in whatever order they lose and find theirs', () => {
    const outages = [0, 0.9, 1.8].flatMap((from) =>
      [0.9, 3.6, Infinity].map((lasts) => ({ from, until: from + lasts })),
    );
    const combinations = outages.flatMap((one) => outages.flatMap((two) => outages.map((three) => [one, two, three])));
    const states = combinations.flatMap((hosts) =>
      Array.from({ length: 15 }, (_, index) => {
        const at = index * 0.45;
        const isOut = ({ from, until }: { from: number; until: number }) => at >= from && at < until;
        const votes = hosts.map(
          (host): RouteVote => ({
            ...{ connector: isOut(host) ? null : 1, lostAt: isOut(host) ? host.from : null },
          }),
        );
        const { state, deadIn } = judgeRoute([connector(1)], votes, { ...statedUp, now: at });
        const wasLastServed = hosts.every(isOut) ? Math.max(...hosts.map(({ from }) => from)) : at;
        const expected = !hosts.every(isOut) ? 'up' : at - wasLastServed < 2 ? 'unknown' : 'dead';
        return { state, expected, isDue: deadIn !== undefined };
      }),
    );
    expect(states.filter(({ state, expected }) => state !== expected)).toEqual([]);
    expect(states.filter(({ state, isDue }) => isDue !== (state === 'unknown'))).toEqual([]);
    expect(new Set(states.map(({ state }) => state))).toEqual(new Set(['up', 'unknown', 'dead']));
  });
});

it('a peer whose connection was lost is online by what others see of it, and says so', () => {
  const why = (answered: boolean) =>
    judge([peer(1, { lost: 20 }), peer(2, { probes: { 1: [answered, 5] }, paths: { 1: 'direct' } })], 1)?.why;
  expect(why(true)).toBe('its connection was lost, but 1 of 1 host reaches it');
  expect(why(false)).toBe('not seen for 10 s; 0 of 1 host reach it');
  expect(judge([peer(1, { lost: 20 })], 1)?.why).toBe('its connection was lost, but no other host reports on it');
});
