import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CoalescedWork, CoalescingTimer } from '../../../src/app/run/coalescing.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Counts how often a loop that only waits for the timer wakes. */
function count(timer: CoalescingTimer): { wakes: number } {
  const counted = { wakes: 0 };
  const { signal } = new AbortController();
  void (async () => {
    for (;;) {
      await timer.next(signal);
      counted.wakes += 1;
    }
  })();
  return counted;
}

describe('a coalescing timer', () => {
  it('expires once for each time that it is scheduled', async () => {
    const timer = new CoalescingTimer();
    const counted = count(timer);
    for (let turn = 1; turn <= 3; turn += 1) {
      timer.schedule();
      await vi.advanceTimersByTimeAsync(1000);
      expect(counted.wakes).toBe(turn);
    }
  });

  it('leaves no listener at the signal, which lives as long as the daemon', async () => {
    const timer = new CoalescingTimer();
    const { signal } = new AbortController();
    for (let turn = 0; turn < 3; turn += 1) {
      timer.schedule();
      const next = timer.next(signal);
      await vi.advanceTimersByTimeAsync(0);
      await next;
    }
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('that expired often since the last call of next() resolves once', async () => {
    const timer = new CoalescingTimer();
    for (let turn = 0; turn < 10; turn += 1) {
      timer.schedule();
      await vi.advanceTimersByTimeAsync(10);
    }
    const counted = count(timer);
    await vi.advanceTimersByTimeAsync(1000);
    expect(counted.wakes).toBe(1);
  });

  it('expires at the earliest scheduled time, and then no more', async () => {
    const timer = new CoalescingTimer();
    const counted = count(timer);
    timer.schedule(30_000);
    timer.schedule(100);
    timer.schedule(500);
    await vi.advanceTimersByTimeAsync(99);
    expect(counted.wakes).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(counted.wakes).toBe(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(counted.wakes).toBe(1);
  });

  it.each(['before', 'while'])('leaves no timer when the signal aborts %s it waits', async (when) => {
    const timer = new CoalescingTimer();
    const stop = new AbortController();
    timer.schedule(100);
    if (when === 'before') stop.abort();
    const next = timer.next(stop.signal);
    stop.abort();
    await next;
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('coalesced work', () => {
  it('runs once more for all requests during a run, and after a run again', async () => {
    const ends: (() => void)[] = [];
    const work = new CoalescedWork(() => new Promise((resolve) => ends.push(resolve)));
    const endRun = async () => {
      ends.at(-1)?.();
      await vi.advanceTimersByTimeAsync(0);
    };
    for (let request = 1; request <= 3; request += 1) work.request();
    expect(ends).toHaveLength(1);
    await endRun();
    expect(ends).toHaveLength(2);
    await endRun();
    work.request();
    expect(ends).toHaveLength(3);
  });
});
