import { expect, it } from 'vitest';
import { watchClock } from '../../../src/app/run/daemon.ts';
import type { Tools } from '../../../src/app/tools.ts';

/** Seconds by which clocks advanced further than the one that stops while a host sleeps. */
interface Passing {
  readonly wall?: number;
  readonly uptime?: number;
}

/** The jumps that are reported while time passes like this, one reading after the other. */
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
  ['the wall clock is set ahead', [{ wall: 3600 }], [3600]],
  ['the wall clock is set back', [{ wall: -3600 }], [-3600]],
  ['it happens again', [{ wall: 60 }, {}, { uptime: 30.4 }], [60, 30]],
])('a jump is reported once, when %s', async (_, passings, jumps) => {
  expect(await findJumps({}, ...passings, {}, {})).toEqual(jumps);
});

it('clocks that drift apart slowly do not jump', async () => {
  const drifting = Array.from({ length: 50 }, () => ({ wall: 0.1, uptime: -0.1 }));
  expect(await findJumps(...drifting, { wall: -1.9 }, { uptime: 1.9 })).toEqual([]);
});
