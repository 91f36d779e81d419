import { afterEach, describe, expect, it, vi } from 'vitest';
import { MapFollower } from '../../../src/app/run/map-follower.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { fail, type MapReply } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const unchanged: MapReply = () => ({ map: null, waited: true });
const gone = new Unreachable('https://x', 'gone', { delivered: false, heard: false, retryAfterMs: null });
const cut = new Unreachable('https://x', 'cut', { delivered: true, heard: true, retryAfterMs: null, waitEnded: true });

/** The requests before a reset and after it, with their seconds; the last reply after it is repeated. */
async function resetAfter(
  before: readonly MapReply[],
  after: readonly MapReply[],
  most: number,
  state: Joined = joinedTo(map),
) {
  const simulated = await SimulatedHost.with(state);
  const stop = new AbortController();
  const follower = new MapFollower(simulated.tools, 'cpn0', 30, async () => true);
  const times: number[] = [];
  const reset: MapReply = () => {
    follower.reset();
    throw new Error('ended');
  };
  simulated.service.mapReplies = [...before, reset, ...after].map(
    (reply): MapReply =>
      async (revision, wait) => {
        times.push(simulated.seconds);
        if (times.length === before.length + 1 + most) stop.abort();
        return reply(revision, wait);
      },
  );
  await follower.run(stop.signal);
  const { mapRequests } = simulated.service;
  const requests = mapRequests.map((each, at) => ({ ...each, at: times[at] ?? 0 }));
  return { before: requests.slice(0, before.length + 1), after: requests.slice(before.length + 1) };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('after a reset, a control plane', () => {
  it('that a gateway cut off gets long polls of the usual length', async () => {
    const { before, after } = await resetAfter([unchanged, fail(cut), unchanged, unchanged], [unchanged], 2);
    expect(before.at(-1)?.wait?.seconds).toBeLessThan(30);
    expect(after[0]?.wait?.seconds).toBe(0);
    expect(after[1]?.wait?.seconds).toBeGreaterThanOrEqual(40);
  });

  it('that a gateway asked for whole maps is asked for changes', async () => {
    const refused: MapReply = () => ({ map, waited: true, refusesDeltas: true });
    const { before, after } = await resetAfter([refused, unchanged], [unchanged], 1);
    expect([before.at(-1)?.base, after[0]?.base?.revision]).toEqual([null, '"1"']);
  });

  it('that failed often is tried again as after its first failure', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999);
    const { before, after } = await resetAfter(
      Array.from({ length: 9 }, () => fail(gone)),
      [fail(gone)],
      2,
    );
    const pauses = [before, after].map((requests) => (requests.at(-1)?.at ?? 0) - (requests.at(-2)?.at ?? 0));
    const first = (before[1]?.at ?? 0) - (before[0]?.at ?? 0);
    expect(pauses[0]).toBeGreaterThan(10 * first);
    expect(pauses[1]).toBeCloseTo(first);
  });

  it('is asked for the nonce of its network, as it is until it answered once', async () => {
    const { nonce: _, ...without } = map;
    const { before, after } = await resetAfter([fail(gone), unchanged, unchanged], [unchanged], 2, joinedTo(without));
    expect(before.map(({ revision }) => revision)).toEqual([null, null, '"1"', '"1"']);
    expect(after.map(({ revision }) => revision)).toEqual([null, '"1"']);
  });
});
