import { expect, test } from 'vitest';
import { DestinationWatcher } from '../../../../src/app/run/paths/destination-watcher.ts';
import type { Tools } from '../../../../src/app/tools.ts';
import { address } from '../../../core/samples.ts';

const used = address('10.77.0.3');

/**
 * The milliseconds at which the destinations are read, while packets leave as in `sentAt`.
 * @param isNew whether the reading with this index leads to a path
 */
async function readings(seconds: number, sentAt: (ms: number) => number, isNew: (index: number) => boolean) {
  let now = 0;
  const ended = new AbortController();
  const read: number[] = [];
  const tools = {
    monotonic: () => now / 1000,
    sleep: async (ms: number) => {
      now += ms;
      if (now > seconds * 1000) ended.abort();
    },
    host: {
      countSent: async () => sentAt(now),
      readRecentDestinations: async () => {
        read.push(now);
        return [used];
      },
    },
  };
  const watcher = new DestinationWatcher(tools as unknown as Tools, 'cpn0', () => isNew(read.length - 1));
  watcher.follow(true);
  await watcher.run(ended.signal);
  return read;
}

test('destinations are read half a second after packets leave, and again at once while they lead to paths', async () => {
  const sent = (ms: number) => (ms < 10_000 ? 0 : ms);
  expect((await readings(14, sent, () => true)).slice(0, 4)).toEqual([10_000, 10_500, 11_000, 11_500]);
});

test('while packets lead to no path, readings are a second apart', async () => {
  expect(
    await readings(
      10,
      (ms) => ms,
      () => false,
    ),
  ).toEqual([500, 1_500, 2_500, 3_500, 4_500, 5_500, 6_500, 7_500, 8_500, 9_500]);
});

test('a few packets are no use of a path, and start nothing', async () => {
  expect(
    await readings(
      60,
      (ms) => Math.floor(ms / 5_000),
      () => true,
    ),
  ).toEqual([]);
});
