import { describe, expect, it } from 'vitest';
import {
  clampInstances,
  findCloned,
  type Instances,
  observeInstance,
} from '../../../../src/core/health/verdict/instances.ts';

const minute = 60_000;

type Request = string | [id: string, at: number];

/** Requests of these instances, a minute apart, or at the given times. */
function observe(...requests: readonly Request[]) {
  let known: Instances | null = null;
  const begins: number[] = [];
  for (const [index, request] of requests.entries()) {
    const [id, at] = typeof request === 'string' ? [request, index * minute] : request;
    const update = observeInstance(known, { id, since: at });
    if (update.begins) begins.push(index);
    known = update.instances;
  }
  return { known, begins };
}

describe('instances of a peer', () => {
  it.each([
    ['a host that runs', ['a', 'a', 'a']],
    ['restarts', ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k']],
    [
      'a restart whose last request comes late',
      [
        ['a', 0],
        ['b', 1_000],
        ['a', 25_000],
        ['b', 50_000],
      ],
    ],
  ] as const)('%s: no copy', (_, requests) => {
    const { known, begins } = observe(...(requests as unknown as Request[]));
    expect(begins).toEqual([]);
    expect(findCloned(known, 20 * minute)).toBeNull();
  });

  it.each([
    ['two hosts', ['a', 'b', 'a', 'b', 'a'], 2],
    ['three hosts', ['a', 'b', 'c', 'a', 'b', 'c'], 3],
    ['two hosts of which one restarts', ['a', 'b', 'c', 'b', 'c'], 3],
    [
      'two hosts that call shortly after each other',
      [
        ['a', 0],
        ['b', 1_000],
        ['a', 5_000],
        ['b', 6_000],
        ['a', 55_000],
      ],
      4,
    ],
  ] as const)('%s: a copy, stated once', (_, requests, at) => {
    const { known, begins } = observe(...(requests as unknown as Request[]));
    expect(begins).toEqual([at]);
    expect(findCloned(known, 5 * minute)).not.toBeNull();
  });

  it('ends ten minutes after the last return, and is stated again after an hour without', () => {
    const { known } = observe('a', 'b', 'a');
    expect(findCloned(known, 11 * minute)).toBe(2 * minute);
    expect(findCloned(known, 12 * minute)).toBeNull();
    expect(observe('a', 'b', 'a', ['b', 60 * minute]).begins).toEqual([2]);
    expect(observe('a', 'b', 'a', ['b', 63 * minute]).begins).toEqual([2, 3]);
  });

  it('counts as a copy from half a minute after it was replaced, and not before', () => {
    const returnAfter = (ms: number) => observe(['a', 0], ['b', 1_000], ['a', 1_000 + ms]).begins;
    expect([returnAfter(29_999), returnAfter(30_000)]).toEqual([[], [2]]);
  });

  it('has copies since their first return, also after another one, after a restart, and after an hour without', () => {
    const since = (at: number, ...requests: Request[]) => findCloned(observe(...requests).known, at * minute);
    expect(since(5, 'a', 'b', 'a', 'b', 'a')).toBe(2 * minute);
    expect(since(6, 'a', 'b', 'a', 'c')).toBe(2 * minute);
    expect(since(6, 'a', 'b', 'a', 'c', 'd')).toBe(2 * minute);
    expect(since(61, 'a', 'b', 'a', ['b', 61 * minute])).toBe(2 * minute);
    expect(since(62, 'a', 'b', 'a', ['b', 62 * minute])).toBe(62 * minute);
  });

  it.each<[string, Instances]>([
    ['the present one', { current: { id: 'a', since: 9 }, previous: [] }],
    [
      'an earlier one',
      {
        current: { id: 'a', since: 0 },
        previous: [
          { id: 'b', since: 0 },
          { id: 'c', since: 9 },
        ],
      },
    ],
    ['a return', { current: { id: 'a', since: 0 }, previous: [], returned: { first: 0, last: 9 } }],
    ['the first return', { current: { id: 'a', since: 0 }, previous: [], returned: { first: 8, last: 9 } }],
  ])('has no instant later than now, whichever was by a clock that was ahead: %s', (_, known) => {
    const { current, previous, returned } = clampInstances(known, 5);
    const instants = [current, ...previous].map(({ since }) => since);
    expect(Math.max(...instants, returned?.first ?? 0, returned?.last ?? 0)).toBe(5);
    expect(clampInstances(known, 9)).toBe(known);
  });

  it('that was found by a clock that was ahead has ended, and is found again by the right one', () => {
    const { known } = observe(['a', 60 * minute], ['b', 61 * minute], ['a', 62 * minute]);
    const clamped = clampInstances(known as Instances, 0);
    expect(findCloned(clamped, 10 * minute)).toBeNull();
    const back = observeInstance(clamped, { id: 'b', since: minute });
    expect(findCloned(back.instances, minute)).not.toBeNull();
    expect(clampInstances(clamped, 0)).toBe(clamped);
  });

  it('remembers a bounded number', () => {
    const { known } = observe(...Array.from({ length: 100 }, (_, index) => `i${index}`));
    expect(known?.previous).toHaveLength(7);
  });
});

it('each earlier start of a peer is recorded once, the newest first', () => {
  const previous = (...requests: Request[]) => observe(...requests).known?.previous.map(({ id }) => id);
  expect(previous('a', 'b', 'a')).toEqual(['b']);
  expect(previous('a', 'b', 'a', 'b', 'a')).toEqual(['b']);
  expect(previous('a', 'b', 'c', 'a')).toEqual(['c', 'b']);
});
