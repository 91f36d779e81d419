import { expect, onTestFinished, test, vi } from 'vitest';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';

const never = new AbortController().signal;

/** The results of these waits; null for one that goes on. */
async function settled(...waits: Promise<boolean>[]): Promise<(boolean | null)[]> {
  await new Promise(setImmediate);
  return Promise.all(waits.map((wait) => Promise.race([wait, Promise.resolve(null)])));
}

test('a notification ends the waits for its network and no others', async () => {
  const notifier = new ChangeNotifier();
  const waits = [1, 1, 2].map((network) => notifier.wait(network, never));
  expect([notifier.count(), notifier.count(1), notifier.count(2), notifier.count(3)]).toEqual([3, 2, 1, 0]);
  notifier.notify(1);
  notifier.notify(3);
  expect(await settled(...waits)).toEqual([true, true, null]);
  expect([notifier.count(1), notifier.count(2)]).toEqual([0, 1]);
});

test('a wait that begins after a notification ends with the next one', async () => {
  const notifier = new ChangeNotifier();
  let again: Promise<boolean> = Promise.resolve(false);
  const first = notifier.wait(1, never).then((changed) => {
    again = notifier.wait(1, never);
    return changed;
  });
  notifier.notify(1);
  expect(await first).toBe(true);
  expect(await settled(again)).toEqual([null]);
  expect(notifier.count(1)).toBe(1);
});

test('an aborted signal ends its own wait and removes it immediately', async () => {
  const notifier = new ChangeNotifier();
  const end = new AbortController();
  const waits = [notifier.wait(1, end.signal), notifier.wait(1, never)];
  end.abort();
  expect(notifier.count(1)).toBe(1);
  expect(await settled(...waits, notifier.wait(1, end.signal))).toEqual([false, null, false]);
  expect(notifier.count(1)).toBe(1);
});

test('closing ends all waits, later ones included', async () => {
  const notifier = new ChangeNotifier();
  const waits = [1, 2].map((network) => notifier.wait(network, never));
  notifier.close();
  expect(await settled(...waits, notifier.wait(1, never))).toEqual([false, false, false]);
  expect(notifier.count()).toBe(0);
});

test('a change within the interval after another one ends the waits that began in between, when the interval is over', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const notifier = new ChangeNotifier(500);
  const first = notifier.wait(1, never);
  notifier.notify(1);
  expect(await first).toBe(true);
  let hasEnded = false;
  notifier.wait(1, never).then(() => {
    hasEnded = true;
  });
  notifier.notify(1);
  await vi.advanceTimersByTimeAsync(499);
  expect([hasEnded, notifier.count(1)]).toEqual([false, 1]);
  await vi.advanceTimersByTimeAsync(1);
  expect(hasEnded).toBe(true);
});
