import { expect, test } from 'vitest';
import { Waiters } from '../../src/control-plane/waiters.ts';

const never = new AbortController().signal;

/** What has come of these waits by now; null where one goes on. */
async function settled(...waits: Promise<boolean>[]): Promise<(boolean | null)[]> {
  await new Promise(setImmediate);
  return Promise.all(waits.map((wait) => Promise.race([wait, Promise.resolve(null)])));
}

test('waking a network ends its waits and no others', async () => {
  const waiters = new Waiters();
  const waits = [1, 1, 2].map((network) => waiters.wait(network, never));
  expect([waiters.count(), waiters.count(1), waiters.count(2), waiters.count(3)]).toEqual([3, 2, 1, 0]);
  waiters.wake(1);
  waiters.wake(3);
  expect(await settled(...waits)).toEqual([true, true, null]);
  expect([waiters.count(1), waiters.count(2)]).toEqual([0, 1]);
});

test('who waits again when woken waits for the next time', async () => {
  const waiters = new Waiters();
  let again: Promise<boolean> = Promise.resolve(false);
  const first = waiters.wait(1, never).then((changed) => {
    again = waiters.wait(1, never);
    return changed;
  });
  waiters.wake(1);
  expect(await first).toBe(true);
  expect(await settled(again)).toEqual([null]);
  expect(waiters.count(1)).toBe(1);
});

test('a signal ends its own wait, and forgets it at once', async () => {
  const waiters = new Waiters();
  const end = new AbortController();
  const waits = [waiters.wait(1, end.signal), waiters.wait(1, never)];
  end.abort();
  expect(waiters.count(1)).toBe(1);
  expect(await settled(...waits, waiters.wait(1, end.signal))).toEqual([false, null, false]);
  expect(waiters.count(1)).toBe(1);
});

test('closing ends all waits, and those that come later', async () => {
  const waiters = new Waiters();
  const waits = [1, 2].map((network) => waiters.wait(network, never));
  waiters.close();
  expect(await settled(...waits, waiters.wait(1, never))).toEqual([false, false, false]);
  expect(waiters.count()).toBe(0);
});
