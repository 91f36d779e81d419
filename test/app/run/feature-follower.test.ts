import { afterEach, expect, it, vi } from 'vitest';
import { FeatureFollower } from '../../../src/app/run/feature-follower.ts';
import { DiskFailed, Refused, Unreachable } from '../../../src/core/errors/index.ts';
import { features } from '../../../src/core/map/features.ts';
import { eventually } from '../../lab/eventually.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const fewer = features.slice(1);
const described = { features: fewer, etag: '"1"' };
const gone = new Unreachable('https://x', 'gone', { delivered: false, heard: false, retryAfterMs: null });

afterEach(() => void vi.restoreAllMocks());

/** A follower that ends after so many requests; its conditions, rests and reported changes. */
async function follow(most: number, onDescribe: SimulatedHost['service']['onDescribe']) {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [])));
  const end = new AbortController();
  const conditions: (string | null)[] = [];
  const rests: number[] = [];
  let changes = 0;
  simulated.service.onDescribe = (etag, signal) => {
    conditions.push(etag);
    return onDescribe(etag, signal);
  };
  const sleep = async (milliseconds: number) => {
    rests.push(milliseconds / 1000);
    if (rests.length === most) end.abort();
  };
  const follower = new FeatureFollower({ ...simulated.tools, sleep }, 'cpn0', () => {
    changes += 1;
  });
  const run = async () => {
    await follower.run(end.signal);
    return { conditions, rests, changes };
  };
  return { simulated, end, conditions, run };
}

it('requests a description again that could not be saved', async () => {
  const { simulated, run } = await follow(2, async () => described);
  vi.spyOn(simulated.tools.store, 'write').mockRejectedValueOnce(
    new DiskFailed('write', '/x', new Error('full') as NodeJS.ErrnoException),
  );
  expect(await run()).toMatchObject({ conditions: [null, null], changes: 1 });
  expect((await simulated.state()).features).toEqual(fewer);
});

it.each<[string, Error, number]>([
  ['minutes after it was unreachable', gone, 300],
  ['an hour after it refused', new Refused(404, 'reading', 'no', 'look'), 3_600],
])('keeps the features, and requests them %s', async (_, error, seconds) => {
  const { simulated, run } = await follow(1, async () => {
    throw error;
  });
  const { rests, changes } = await run();
  expect(rests[0]).toBeGreaterThanOrEqual(0.8 * seconds);
  expect(rests[0]).toBeLessThanOrEqual(1.2 * seconds);
  expect(changes).toBe(0);
  expect((await simulated.state()).features).toEqual(features);
  expect(simulated.logged).toHaveLength(1);
});

it('logs nothing of a request that its end interrupts', async () => {
  const { simulated, end, conditions, run } = await follow(
    9,
    (_, signal) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  );
  const ended = run();
  await eventually('a request', () => conditions.length > 0);
  end.abort();
  await ended;
  expect(simulated.logged).toEqual([]);
});
