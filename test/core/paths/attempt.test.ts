import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { parseEndpoint, type SocketEndpoint } from '../../../src/core/net/endpoint.ts';
import { advanceAttempt, attemptMs, beginAttempt } from '../../../src/core/paths/attempt.ts';
import type { Attempt, AttemptAction, TryMessage } from '../../../src/core/paths/attempt-state.ts';
import { probePrefixOf } from '../../../src/core/paths/probe-address.ts';
import { keyPair, prefix, underlay } from '../samples.ts';
import { type Ended, lanOf, outsideOf, type PairOptions, type Router, runPair } from './simulated-pair.ts';

const host = (at: number, router: Router, more: Partial<PairOptions['hosts'][0]> = {}) => ({
  ...{ router, canProbe: true, candidates: [lanOf(at), outsideOf(at)] },
  ...more,
});

const pair = (one: Router, other: Router, changes: Partial<PairOptions> = {}): Ended =>
  runPair({
    ...{ hosts: [host(0, one), host(1, other)], isSameLan: false, delay: 25, skew: 0, lags: [0], isWide: true },
    ...changes,
  });

/** An action may take place just after a packet of the peer, as it was decided before. The next attempt proves the path then. */
function tryTwice(options: PairOptions): Ended {
  const ended = runPair(options);
  const [one, other] = ended.proven;
  if (one !== null && other !== null) return ended;
  const [lag = 0, ...lags] = options.lags;
  return runPair({ ...options, skew: options.skew + 7, lags: [...lags, lag, 5] });
}

const mostPackets = ({ packets }: Ended) => Math.max(0, ...packets.flatMap((each) => [...each.values()]));
const both = (by: 'probe' | 'handshake' | null) => [by, by];

describe('an attempt', () => {
  it('reaches a peer behind each kind of router that theory allows, within seconds', () => {
    const reached = (one: Router, other: Router, skew = 0) => pair(one, other, { skew }).proven;
    expect(reached('open', 'preserving')).toEqual(both('probe'));
    expect(reached('open', 'symmetric')).toEqual(both('probe'));
    expect(reached('preserving', 'preserving')).toEqual(both('probe'));
    expect(reached('preserving', 'preserving', 400)).toEqual(both('probe'));
    expect(reached('rejecting', 'rejecting')).toEqual(both('probe'));
    expect(pair('preserving', 'preserving').took).toBeLessThan(3_000);
    expect(pair('preserving', 'preserving', { isSameLan: true }).took).toBeLessThan(1_000);
  });

  it('begins again soon if both initiations were in flight at once', () => {
    const hosts = [
      host(0, 'open', { candidates: [outsideOf(0)] }),
      host(1, 'open', { candidates: [outsideOf(1)] }),
    ] as const;
    const apart = pair('open', 'open', { hosts, skew: 30 });
    const crossed = pair('open', 'open', { hosts });
    expect([apart.proven, crossed.proven]).toEqual([both('probe'), both('probe')]);
    expect(crossed.took).toBeLessThan(apart.took + 250);
  });

  it('gives up where theory allows no path, on both sides, and names what it tried', () => {
    for (const [one, other] of [
      ['symmetric', 'symmetric'],
      ['preserving', 'symmetric'],
      ['blocked', 'open'],
    ] as const) {
      const ended = pair(one, other);
      expect(ended.proven).toEqual(both(null));
      expect(ended.tried[0]).toEqual([
        { endpoint: lanOf(1), outcome: 'no-answer' },
        { endpoint: outsideOf(1), outcome: 'no-answer' },
      ]);
    }
  });

  it('is proven by the handshake if either host cannot probe, and by nothing if only small packets pass', () => {
    const hosts = [host(0, 'open', { canProbe: false }), host(1, 'preserving')] as const;
    expect(pair('open', 'open', { hosts }).proven).toEqual(both('handshake'));
    const narrow = pair('open', 'preserving', { isWide: false });
    expect(narrow.proven).toEqual(both(null));
    expect(narrow.tried.map((each) => each.at(-1)?.outcome)).toEqual(['handshake', 'handshake']);
  });

  it('tries the last candidate even if the host is busy throughout its window', () => {
    for (const late of [[0, 3_000], [3_000]]) {
      const lags = [...late, ...Array(40).fill(0)];
      expect(pair('preserving', 'preserving', { lags }).proven).toEqual(both('probe'));
    }
  });

  it('names the endpoint of a handshake that the peer began first', () => {
    const [one, other] = [
      host(0, 'open', { candidates: [outsideOf(0)] }),
      host(1, 'open', { candidates: [outsideOf(1)] }),
    ];
    const narrow = pair('open', 'open', { hosts: [one, other], isWide: false, skew: 2_000 });
    expect(narrow.tried).toEqual([
      [{ endpoint: outsideOf(1), outcome: 'handshake' }],
      [{ endpoint: outsideOf(0), outcome: 'handshake' }],
    ]);
  });

  it('reaches a host that gives no candidate of its LAN', () => {
    const silent = [host(0, 'blocked', { candidates: [] }), host(1, 'blocked')] as const;
    expect(pair('blocked', 'blocked', { hosts: silent, isSameLan: true }).proven).toEqual(both('probe'));
  });

  const routers = fc.constantFrom<Router>('open', 'preserving', 'symmetric', 'rejecting', 'blocked');
  const pairs = fc.record({
    hosts: fc.tuple(
      fc.record({ router: routers, canProbe: fc.boolean(), more: fc.integer({ min: 0, max: 6 }) }),
      fc.record({ router: routers, canProbe: fc.boolean(), more: fc.integer({ min: 0, max: 6 }) }),
    ),
    ...{ isSameLan: fc.boolean(), delay: fc.integer({ min: 1, max: 140 }), skew: fc.integer({ min: 0, max: 300 }) },
    ...{ lags: fc.array(fc.integer({ min: 0, max: 80 }), { minLength: 1, maxLength: 7 }), isWide: fc.boolean() },
  });

  it('sends at most 8 packets to a candidate, and both sides agree on what it proved', () => {
    fc.assert(
      fc.property(pairs, ({ hosts, ...rest }) => {
        const [one, other] = hosts.map(({ router, canProbe, more }, at) => {
          const others = Array.from({ length: more }, (_, index) => `198.51.100.${at * 8 + index}:51820`);
          return { router, canProbe, candidates: [lanOf(at), ...others, outsideOf(at)] };
        });
        const options: PairOptions = { ...rest, hosts: [one, other] as never };
        expect(mostPackets(runPair(options))).toBeLessThanOrEqual(8);
        const ended = tryTwice(options);
        expect(ended.proven[0] === null).toBe(ended.proven[1] === null);
      }),
      { numRuns: 30 },
    );
  });

  it('proves each path that theory allows, whatever the delay and the lags of the hosts', () => {
    fc.assert(
      fc.property(pairs, ({ hosts: [a, b], skew, ...rest }) => {
        const found = [a.router, b.router];
        const opens = found.includes('open') && !found.includes('blocked');
        const isPunched = found.every((each) => each === 'preserving');
        fc.pre(rest.isSameLan || opens || isPunched);
        const hosts = [
          host(0, a.router, { canProbe: a.canProbe }),
          host(1, b.router, { canProbe: b.canProbe }),
        ] as const;
        const ended = tryTwice({ ...rest, hosts, skew, isWide: true });
        const by = a.canProbe && b.canProbe ? 'probe' : 'handshake';
        expect(ended.proven).toEqual(both(by));
      }),
      { numRuns: 50 },
    );
  });
});

const begin = (endpoints: readonly string[], nats?: TryMessage['nats']): Attempt =>
  beginAttempt(
    { peer: 2, attempt: 7, endpoints, start_in_ms: 300, first: true, ...(nats && { nats }) },
    { now: 1_000, roundTrip: 40, canProbe: true, underlay, tunnel: { range: prefix('10.77.0.0/24'), routes: [] } },
  );

const start = (endpoints: readonly string[], changes: Partial<Attempt> = {}): Attempt => ({
  ...begin(endpoints),
  ...changes,
});

const entryOf = (changes: Partial<ActualPeer> = {}): ActualPeer => ({
  ...{ publicKey: keyPair(2).publicKey, presharedKey: null, endpoint: null, allowedIps: [probePrefixOf(7, 2)] },
  ...{ keepalive: 25, latestHandshake: null, rxBytes: 0, txBytes: 0, ...changes },
});

describe('the events of an attempt', () => {
  it('start half a round trip before the time of the message', () => {
    expect(start([]).startAt).toBe(1_280);
    // The peer must have sent before: its NAT may accept packets only from addresses that it knows.
    expect(begin([], { own: 'symmetric', peer: 'steady' }).startAt).toBe(1_530);
    expect(begin([], { own: 'steady', peer: 'symmetric' }).startAt).toBe(1_280);
    expect(begin([], { own: 'symmetric', peer: 'symmetric' }).startAt).toBe(1_280);
  });

  it('end at once for a peer that carries packets, which stays as it is', () => {
    const entry = entryOf({ allowedIps: [prefix('10.77.0.2/32')] });
    const { attempt, actions } = advanceAttempt(start([outsideOf(1)]), { now: 1_000, entry });
    expect([attempt.state, actions]).toEqual(['ended', []]);
  });

  it('add no peer while the host has sent too much, and end within 12 s of the start', () => {
    let attempt = start([outsideOf(1)]);
    const actions: AttemptAction[] = [];
    for (let now: number | null = 1_000; now !== null; ) {
      const advanced = advanceAttempt(attempt, { now, entry: entryOf(), isPaused: true });
      ({ attempt, nextAt: now } = advanced);
      actions.push(...advanced.actions);
      if (now !== null) expect(now).toBeLessThanOrEqual(attempt.startAt + attemptMs);
    }
    expect(actions).toEqual([
      { do: 'renew', endpoint: null },
      { do: 'give-up', tried: [] },
    ]);
  });

  const entries = fc.option(
    fc.record({
      rxBytes: fc.nat({ max: 400 }),
      txBytes: fc.nat({ max: 2_000 }),
      latestHandshake: fc.constantFrom(null, null, null, null, null, 1),
      endpoint: fc.constantFrom(null, parseEndpoint(outsideOf(5)) as SocketEndpoint),
    }),
  );

  it('in any order add a peer at most three times for a candidate, and never one that has a session', () => {
    const observations = fc.array(
      fc.record({
        after: fc.integer({ min: 1, max: 400 }),
        entry: entries,
        probe: fc.constantFrom(undefined, 'full', 'small', 'none'),
      }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(observations, fc.boolean(), (all, first) => {
        let attempt = start([lanOf(1), outsideOf(1), outsideOf(2)], { first });
        let now = 1_000;
        const additions = new Map<number, number>();
        for (const { after, entry: changes, probe } of all) {
          now += after;
          const entry = changes && entryOf(changes);
          const { state } = attempt;
          const advanced = advanceAttempt(attempt, { now, entry, ...(probe && { probe }) } as never);
          ({ attempt } = advanced);
          if (state === 'ended') expect(advanced.actions).toEqual([]);
          for (const action of advanced.actions) {
            if (action.do !== 'renew') continue;
            // A session that the peer has too has received data: more than a response.
            const isShared = entry !== null && entry.latestHandshake !== null && entry.rxBytes > 123;
            expect(state !== 'new' && isShared).toBe(false);
            if (action.endpoint !== null) additions.set(attempt.at, (additions.get(attempt.at) ?? 0) + 1);
          }
        }
        expect(Math.max(0, ...additions.values())).toBeLessThanOrEqual(3);
      }),
      { numRuns: 500 },
    );
  });
});
