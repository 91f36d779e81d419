import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Bell } from '../../../src/app/run/bell.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Counts how often somebody wakes who does nothing but listen. */
function listen(bell: Bell): { wakes: number } {
  const heard = { wakes: 0 };
  void (async () => {
    for (;;) {
      await bell.rung();
      heard.wakes += 1;
    }
  })();
  return heard;
}

describe('a bell', () => {
  it('wakes its listener once for each time that it rings', async () => {
    const bell = new Bell();
    const heard = listen(bell);
    for (let turn = 1; turn <= 3; turn += 1) {
      bell.ring();
      await vi.advanceTimersByTimeAsync(1000);
      expect(heard.wakes).toBe(turn);
    }
  });

  it('that rang often while nobody listened wakes once', async () => {
    const bell = new Bell();
    for (let turn = 0; turn < 10; turn += 1) {
      bell.ring();
      await vi.advanceTimersByTimeAsync(10);
    }
    const heard = listen(bell);
    await vi.advanceTimersByTimeAsync(1000);
    expect(heard.wakes).toBe(1);
  });

  it('rings when the first of all rings is due, and then no more', async () => {
    const bell = new Bell();
    const heard = listen(bell);
    bell.ring(30_000);
    bell.ring(100);
    bell.ring(500);
    await vi.advanceTimersByTimeAsync(99);
    expect(heard.wakes).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(heard.wakes).toBe(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(heard.wakes).toBe(1);
  });

  it('that is silenced leaves no timer', () => {
    const bell = new Bell();
    bell.ring(100);
    bell.silence();
    expect(vi.getTimerCount()).toBe(0);
  });
});
