import { expect, it } from 'vitest';
import { watchClock } from '../../../src/app/run/watch-clock.ts';
import type { Tools } from '../../../src/app/tools.ts';

/** Seconds by which clocks went on otherwise than the one that stands still while a host sleeps. */
interface Passing {
  readonly wall?: number;
  readonly uptime?: number;
}

/** The jumps that are told of while time passes so, one look after the other. */
async function findJumps(...passings: readonly Passing[]): Promise<number[]> {
  const end = new AbortController();
  const seconds = { still: 100, wall: 1_700_000_000, uptime: 5_000 };
  const left = [...passings];
  const tools: Pick<Tools, 'monotonic' | 'uptime' | 'now' | 'sleep'> = {
    monotonic: () => seconds.still,
    uptime: () => seconds.uptime,
    now: () => new Date(seconds.wall * 1000),
    sleep: async (milliseconds, signal) => {
      expect(signal).toBe(end.signal);
      const { wall = 0, uptime = 0 } = left.shift() ?? {};
      seconds.still += milliseconds / 1000;
      seconds.wall += milliseconds / 1000 + wall;
      seconds.uptime += milliseconds / 1000 + uptime;
      if (left.length === 0) end.abort();
    },
  };
  const jumps: number[] = [];
  await watchClock(tools as Tools, end.signal, (jump) => void jumps.push(jump));
  return jumps;
}

it.each<[string, readonly Passing[], readonly number[]]>([
  ['the host sleeps', [{ wall: 300, uptime: 300 }], [300]],
  ['the host sleeps, and its wall clock stood still', [{ uptime: 300 }], [300]],
  ['somebody sets the wall clock ahead', [{ wall: 3600 }], [3600]],
  ['somebody sets the wall clock back', [{ wall: -3600 }], [-3600]],
  ['it happens again', [{ wall: 60 }, {}, { uptime: 30.4 }], [60, 30]],
])('a jump is told of once, when %s', async (_, passings, jumps) => {
  expect(await findJumps({}, ...passings, {}, {})).toEqual(jumps);
});

it('clocks that drift apart by little, for ever, do not jump', async () => {
  const drifting = Array.from({ length: 50 }, () => ({ wall: 0.1, uptime: -0.1 }));
  expect(await findJumps(...drifting, { wall: -1.9 }, { uptime: 1.9 })).toEqual([]);
});
