import { expect, test } from 'vitest';
import { createRateWindows } from '../../../src/control-plane/http/rate-window.ts';

test('a window counts the requests of each caller until its time is over', () => {
  let now = 1_000;
  const windows = new (createRateWindows(() => now))();
  const states: [number, number][] = [];
  const note = (_: Error | null, state?: { current: number; ttl: number }) => {
    if (state) states.push([state.current, state.ttl]);
  };
  windows.incr('a', note, 60_000, 10);
  now += 20_000;
  windows.incr('a', note, 60_000, 10);
  windows.incr('b', note, 60_000, 10);
  now += 40_000;
  windows.incr('a', note, 60_000, 10);
  expect(states).toEqual([
    [1, 60_000],
    [2, 40_000],
    [1, 60_000],
    [1, 60_000],
  ]);
});
