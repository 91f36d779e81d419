import { describe, expect, test } from 'vitest';
import {
  attemptMs,
  beginTrying,
  end,
  isLost,
  isUnderWay,
  mayStart,
  type Pair,
  prove,
  reconsider,
  rest,
  restLong,
  restShort,
  start,
} from '../../../src/control-plane/paths/pair.ts';

const now = 1_000_000;
const minute = 60_000;
const begin = (pair?: Pair, at = now, random = 0.5) =>
  start(pair, { peers: [5, 3], by: 5, observers: 1, now: at, random, first: 700 });
const trying = beginTrying(begin(), now + 500);
const directOf = (at: number) => prove(prove(trying, 3, at), 5, at);

test('a pair has its lower id first, and its attempts count on', () => {
  const first = begin();
  expect(first).toMatchObject({ a: 3, b: 5, state: 'gathering', attempt: 700, tries: 1, startedAt: now });
  expect(begin(first)).toMatchObject({ attempt: 701, tries: 2, data: { by: 5, proven: [] } });
});

describe('the backoff', () => {
  test('doubles from 30 seconds to 30 minutes', () => {
    const delays: number[] = [];
    let pair: Pair | undefined;
    for (let count = 0; count < 9; count += 1) {
      pair = rest(begin(pair), now, 0.5);
      delays.push((pair.nextAt - now) / minute);
    }
    expect(delays).toEqual([0.5, 1, 2, 4, 8, 16, 30, 30, 30]);
  });

  test.each([
    [0, 24_000],
    [0.5, 30_000],
    [1, 36_000],
  ])('varies by a fifth: at %d it is %d ms', (random, delay) => {
    expect(rest(trying, now, random).nextAt - now).toBe(delay);
    // It holds from the start on: the process may stop meanwhile.
    expect(begin(undefined, now, random).nextAt - now).toBe(delay);
  });

  test('is over at its instant', () => {
    const { nextAt, ...pair } = rest(trying, now, 0.5);
    const startsAt = (at: number) => mayStart({ ...pair, nextAt }, at);
    expect([startsAt(nextAt - 1), startsAt(nextAt)]).toEqual([false, true]);
    expect([mayStart(undefined, now), mayStart(directOf(now), now + 99 * minute)]).toEqual([true, false]);
  });

  test('of an attempt without endpoints has the peer that stated none, until the next one', () => {
    const pair = restShort(begin(), now + 3000, 3);
    expect(pair).toMatchObject({ nextAt: now + 4000, data: { silent: 3 } });
    expect(begin(pair).data.silent).toBeUndefined();
  });

  test('is the longest for NATs that allow no path', () => {
    expect(restLong(trying, now)).toMatchObject({ state: 'resting', nextAt: now + 30 * minute });
  });

  test('begins again once endpoints change, but no two attempts follow each other at once', () => {
    const worn = { ...rest(trying, now + 1000, 0.5), tries: 7, nextAt: now + 30 * minute };
    expect(reconsider(worn, now + 1000)).toMatchObject({ tries: 0, nextAt: now + 5000 });
    expect(reconsider(worn, now + minute)).toMatchObject({ tries: 0, nextAt: now + minute });
    expect(reconsider({ ...worn, nextAt: now }, now + minute).nextAt).toBe(now);
    for (const pair of [begin(), directOf(now)]) expect(reconsider(pair, now + minute)).toBe(pair);
  });

  test('begins again soon after an attempt in which endpoints changed: the hosts tried the old ones', () => {
    const outdated = reconsider({ ...trying, tries: 4 }, now + 2000);
    expect(reconsider(outdated, now + 3000)).toBe(outdated);
    const rested = rest(outdated, now + 12_000, 0.5);
    expect(rested).toMatchObject({ state: 'resting', tries: 0, nextAt: now + 12_000 });
    // Once.
    expect(rest(begin(rested), now + 24_000, 0.5).nextAt).toBeGreaterThan(now + minute / 2);
  });

  test('begins again less than once a minute where endpoints change all the time', () => {
    let pair = rest(begin(), now, 0.5);
    const starts: number[] = [];
    for (let at = now; at < now + 120 * minute; at += 1000) {
      pair = reconsider(pair, at);
      if (!mayStart(pair, at)) continue;
      pair = rest(begin(pair, at), at, 0.5);
      starts.push((at - now) / 1000);
    }
    expect(starts.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(starts.length).toBeLessThan(120);
    expect(pair.data.resets?.length).toBeLessThan(10);
  });

  test('begins again at once for a host that moves ten times an hour', () => {
    let pair = rest(begin(), now, 0.5);
    for (let at = now; at < now + 120 * minute; at += 6 * minute) {
      pair = rest(begin(rest(begin(pair, at), at, 0.5), at + minute), at + minute, 0.5);
      pair = reconsider(pair, at + 6 * minute);
      expect([mayStart(pair, at + 6 * minute), pair.tries]).toEqual([true, 0]);
    }
  });
});

test('a path is direct once both have proven it', () => {
  const half = prove(prove(trying, 3, now), 3, now + 1);
  expect([half.state, half.data.proven]).toEqual(['trying', [3]]);
  expect(prove(half, 5, now + 2)).toMatchObject({ state: 'direct', at: now + 2, data: { proven: [3, 5] } });
  expect(begin(directOf(now)).data.proven).toEqual([]);
});

test('an attempt is under way for a bounded time', () => {
  expect([begin(), trying].map((pair) => isUnderWay(pair, now + attemptMs - 1))).toEqual([true, true]);
  expect(isUnderWay(trying, now + attemptMs)).toBe(false);
  expect([directOf(now), rest(trying, now, 0)].some((pair) => isUnderWay(pair, now))).toBe(false);
});

test('a direct path is lost if one of both wants it again, once both must have switched', () => {
  expect([isLost(directOf(now), now + 29_999), isLost(directOf(now), now + 30_000)]).toEqual([false, true]);
  expect(isLost(trying, now + minute)).toBe(false);
});

describe('the end of a direct path', () => {
  test.each(['idle', 'lost', 'moved'] as const)(
    'that was used for a while allows the next attempt at once: %s',
    (why) => {
      const at = now + minute;
      expect(end(directOf(now), why, at, 0.5)).toMatchObject({ state: 'resting', tries: 0, nextAt: at });
    },
  );

  test.each(['idle', 'lost', 'moved'] as const)('that was a false start counts as a failure: %s', (why) => {
    expect(end(directOf(now), why, now + 1000, 0.5)).toMatchObject({ tries: 1, nextAt: now + 31_000 });
  });
});
