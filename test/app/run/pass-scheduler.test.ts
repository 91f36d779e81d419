import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type NextPass, PassScheduler } from '../../../src/app/run/pass-scheduler.ts';
import { CommandFailed, MissingTool, NotConfirmed } from '../../../src/core/errors/index.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const interval = 30;
const succeeded = { error: null, requeueAfter: null };
const notConfirmed = new NotConfirmed('cpn0', { revision: null, loss: null, again: 'later', withinMs: 1 });
const terminal = { error: new MissingTool('ip', 'install iproute2'), requeueAfter: null };

/** A scheduler whose loop counts the passes, each with this result. */
function start(result: NextPass) {
  const scheduler = new PassScheduler(interval);
  const stop = new AbortController();
  const counted = { passes: 0 };
  void (async () => {
    for (;;) {
      await scheduler.next(stop.signal);
      if (stop.signal.aborted) return;
      counted.passes += 1;
      scheduler.schedule(result);
    }
  })();
  scheduler.trigger();
  return { scheduler, counted, stop };
}

const passSeconds = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);

describe('after a pass that succeeded', () => {
  it('the next one comes after the interval, a fifth more or less', async () => {
    const { counted } = start(succeeded);
    await passSeconds(0.8 * interval - 0.1);
    expect(counted.passes).toBe(1);
    await passSeconds(0.4 * interval + 0.2);
    expect(counted.passes).toBe(2);
  });

  it('a postponed repair is due at its time', async () => {
    const { counted } = start({ error: null, requeueAfter: 5_000 });
    await passSeconds(4.9);
    expect(counted.passes).toBe(1);
    await passSeconds(0.2);
    expect(counted.passes).toBe(2);
  });

  it('host events are combined, and one of another interface waits longer', async () => {
    const { scheduler, counted } = start(succeeded);
    await passSeconds(1);
    for (const isUrgent of [false, false]) scheduler.triggerByEvent(isUrgent);
    await passSeconds(1.9);
    expect(counted.passes).toBe(1);
    await passSeconds(0.2);
    expect(counted.passes).toBe(2);
    await passSeconds(1);
    for (const isUrgent of [false, true, true]) scheduler.triggerByEvent(isUrgent);
    await passSeconds(0.15);
    expect(counted.passes).toBe(3);
  });

  it('an event right after it waits for half a second', async () => {
    const { scheduler, counted } = start(succeeded);
    await passSeconds(0.01);
    scheduler.triggerByEvent(true);
    await passSeconds(0.45);
    expect(counted.passes).toBe(1);
    await passSeconds(0.1);
    expect(counted.passes).toBe(2);
  });

  it('a change of the state triggers none', async () => {
    const { scheduler, counted } = start(succeeded);
    await passSeconds(1);
    scheduler.triggerByStateChange();
    await passSeconds(10);
    expect(counted.passes).toBe(1);
  });
});

describe('after an error that a retry may fix', () => {
  it.each<[string, unknown]>([
    ['of a command', new CommandFailed('wg set', 1, 'failed')],
    ['after a change that was rolled back', notConfirmed],
    ['that is a bug', new TypeError('undefined is not a function')],
  ])('%s, the network is retried, with a growing backoff', async (_, error) => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999);
    const { counted } = start({ error, requeueAfter: null });
    await passSeconds(1.5);
    expect(counted.passes).toBe(2);
    await passSeconds(1.5);
    expect(counted.passes).toBe(2);
    await passSeconds(1);
    expect(counted.passes).toBe(3);
    vi.restoreAllMocks();
  });
});

describe('the backoff', () => {
  const failed = { error: new CommandFailed('wg set', 1, 'failed'), requeueAfter: null };

  /** The milliseconds after each pass until the next one. */
  async function pausesAfter(results: readonly NextPass[]): Promise<number[]> {
    vi.spyOn(Math, 'random').mockReturnValue(0.999);
    const scheduler = new PassScheduler(1_000);
    const pauses: number[] = [];
    for (const result of results) {
      const ended = performance.now();
      scheduler.schedule(result);
      scheduler.trigger(60_000);
      const next = scheduler.next(new AbortController().signal);
      await vi.advanceTimersToNextTimerAsync();
      await next;
      pauses.push(Math.round(performance.now() - ended));
    }
    vi.restoreAllMocks();
    return pauses;
  }

  it.each<[string, NextPass, number]>([
    ['grows further after a postponed repair, which is no success', { error: null, requeueAfter: 5_000 }, 2],
    ['starts over after a pass that succeeded', { error: null, requeueAfter: null }, 0],
  ])('%s', async (_, between, as) => {
    const pauses = await pausesAfter([failed, failed, failed]);
    expect(pauses.toSorted((one, other) => one - other)).toEqual(pauses);
    expect((await pausesAfter([failed, failed, between, failed])).at(-1)).toBe(pauses[as]);
  });
});

describe('after an error that no retry can fix', () => {
  it('only the interval starts a pass', async () => {
    const { counted } = start(terminal);
    await passSeconds(0.8 * interval - 0.1);
    expect(counted.passes).toBe(1);
    await passSeconds(0.4 * interval + 0.2);
    expect(counted.passes).toBe(2);
  });

  it.each<[string, (scheduler: PassScheduler) => void]>([
    ['an event of the host', (scheduler) => scheduler.triggerByEvent(true)],
    ['a change of the state', (scheduler) => scheduler.triggerByStateChange()],
    ['a new map', (scheduler) => scheduler.trigger()],
  ])('%s starts a pass', async (_, trigger) => {
    const { scheduler, counted } = start(terminal);
    await passSeconds(2);
    trigger(scheduler);
    await passSeconds(1.2);
    expect(counted.passes).toBe(2);
  });

  it('states that the pass itself writes start no tight loop', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999);
    const { scheduler, counted } = start(terminal);
    for (let turn = 0; turn < 600; turn += 1) {
      scheduler.triggerByStateChange();
      await passSeconds(0.1);
    }
    expect(counted.passes).toBeLessThan(10);
    vi.restoreAllMocks();
  });
});

it('leaves no timer after the signal aborted', async () => {
  const { stop } = start(succeeded);
  await passSeconds(1);
  stop.abort();
  await passSeconds(0);
  expect(vi.getTimerCount()).toBe(0);
});
