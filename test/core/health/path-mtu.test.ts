import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findLimit,
  findNarrowest,
  guessSizes,
  isPathDue,
  leastPathMtu,
  mayChange,
  nameUnderlay,
  newPath,
  type PathMtu,
  type ProbedPath,
  recordMeasurement,
  searchSize,
  trackPath,
} from '../../../src/core/health/path-mtu.ts';
import { address, desireFor, network, options, peer, prefix, underlay, usualConstraints } from '../samples.ts';

/** Searches where `passes` decides on each packet; also tells how many packets were sent. */
function search(passes: (bytes: number) => boolean, guesses: readonly number[] = guessSizes(null), full = 1420) {
  const searching = searchSize(full, guesses);
  const sizes: number[] = [];
  let sent = 0;
  let requests = 0;
  let step = searching.next();
  while (!step.done) {
    const { bytes, count } = step.value;
    sent += count;
    requests += 1;
    sizes.push(bytes);
    const answers = Array.from({ length: count }, () => passes(bytes));
    step = searching.next(answers.includes(true));
  }
  return { size: step.value, sent, requests, sizes };
}

const measured = (mtu: number): PathMtu => ({
  mtu,
  peer: 2,
  underlay: nameUnderlay(underlay),
  measuredAt: '2026-11-22T12:00:00.000Z',
});

describe('the largest packet that passes', () => {
  it('is found with one echo where all pass', () => {
    expect(search(() => true)).toEqual({ size: 1420, sent: 1, requests: 1, sizes: [1420] });
  });

  it('is found in few steps, at most 8 bytes too small', () => {
    for (const limit of [100, 576, 1199, 1200, 1201, 1279, 1280, 1419]) {
      const { size, requests } = search((bytes) => bytes <= limit);
      expect(limit - (size ?? 0)).toBeLessThanOrEqual(8);
      expect(size).toBeLessThanOrEqual(limit);
      expect(requests).toBeLessThan(19);
    }
  });

  it('is found sooner where it is as before', () => {
    const { size, requests } = search((bytes) => bytes <= 1315, guessSizes(measured(1310)));
    expect(size).toBe(1310);
    expect(requests).toBe(9);
    expect(search((bytes) => bytes <= 1380, guessSizes(measured(1310))).size).toBeGreaterThan(1371);
  });

  it('is searched for only between what passed and what did not, whatever was guessed', () => {
    const { sizes } = search((bytes) => bytes <= 1315, [1310, 1310, 1200, 1330, 1330, 1400, 1420, 1500]);
    expect(sizes).toEqual([1420, 84, 1420, 84, 1420, 1310, 1330, 1320, 1315, 1320, 84]);
  });

  it('is unknown for a peer that answers no echo, or only now and then', () => {
    expect(search(() => false)).toMatchObject({ size: null, sent: 4, requests: 2 });
    let sent = 0;
    const isDown = () => {
      sent += 1;
      return sent > 7 && sent < 11;
    };
    expect(search(isDown).size).toBeNull();
  });

  it('is unknown if the path went down during the search', () => {
    let sent = 0;
    const dies = (bytes: number) => {
      sent += 1;
      return bytes <= 1300 && sent < 20;
    };
    expect(search(dies).size).toBeNull();
    sent = 0;
    const recovers = (bytes: number) => {
      sent += 1;
      return sent < 13 ? bytes <= 1300 : sent > 20;
    };
    expect(search(recovers).size).toBeNull();
  });

  it('is not lowered by packets that are lost by chance', () => {
    fc.assert(
      // Of twelve packets in a row no more than two are lost, as with a loss of some per cent.
      fc.property(fc.infiniteStream(fc.subarray([...Array(12).keys()], { maxLength: 2 })), (stream) => {
        let lost: readonly number[] = [];
        let sent = 0;
        const { size } = search(() => {
          if (sent % 12 === 0) lost = stream.next().value;
          sent += 1;
          return !lost.includes((sent - 1) % 12);
        });
        expect(size).toBe(1420);
      }),
    );
  });
});

describe('a measured MTU', () => {
  const on = (changes: Partial<typeof underlay>) => ({ ...underlay, ...changes });

  it('limits the tunnel on the underlay where it was measured', () => {
    const wanted = (pathMtu: PathMtu | null, around = underlay, mtu: number | null = null) => {
      const self = peer(1);
      const desired = desireFor(
        self,
        network([self, peer(2)]),
        { pathMtu, options: { ...options, mtu } },
        {
          ...usualConstraints,
          underlay: around,
        },
      );
      return [desired.config.mtu, desired.pathMtu?.mtu ?? null, desired.fittedMtu];
    };
    expect(wanted(null)).toEqual([1420, null, 1420]);
    expect(wanted(measured(1310))).toEqual([1310, 1310, 1420]);
    expect(wanted(measured(1310), on({ gateways: [address('203.0.113.1')] }))).toEqual([1420, null, 1420]);
    expect(wanted(measured(1310), on({ underlayMtu: 1400 }))).toEqual([1320, null, 1320]);
    // What a person chose stays.
    expect(wanted(measured(1310), underlay, 1400)).toEqual([1400, null, 1420]);
    // From a file that was edited.
    expect(wanted(measured(68))).toEqual([leastPathMtu, leastPathMtu, 1420]);
    expect(findLimit(measured(1420), underlay, 1420)).toBeNull();
  });

  it('holds while interfaces of containers and resolvers come and go', () => {
    const docker = { prefix: prefix('172.17.0.0/16'), link: 'docker0' };
    const more = on({ connected: [docker, ...underlay.connected], resolvers: [] });
    expect(nameUnderlay(more)).toBe(nameUnderlay(underlay));
    const second = { prefix: prefix('198.51.100.0/24'), link: 'wlan0' };
    const both = { uplinks: ['eth0', 'wlan0'], gateways: [address('203.0.113.254'), address('198.51.100.254')] };
    expect(nameUnderlay(on({ ...both, connected: [...underlay.connected, second] }))).toBe(
      nameUnderlay(on({ ...both, gateways: both.gateways.toReversed(), connected: [second, ...underlay.connected] })),
    );
    expect(nameUnderlay(on({ uplinks: [], gateways: [] }))).toBe('203.0.113.0/24 eth0, 1500');
  });
});

describe('a path', () => {
  const host = address('203.0.113.2');
  const at = (rxBytes: number, txBytes: number, where = host) => ({ host: where, rxBytes, txBytes });
  const fresh = newPath(2, host);
  /** A path that was measured at second 0, after these bytes were received and sent. */
  const used = (size: number | null, ...[rxBytes, txBytes]: [number, number]): ProbedPath =>
    trackPath(trackPath(recordMeasurement(fresh, size, 0), at(0, 0), 1420), at(rxBytes, txBytes), 1420);
  const dueAt = (path: ProbedPath) => [0, 29, 30, 59, 60, 599, 600].find((now) => isPathDue(path, 1420, now)) ?? null;

  it('is measured at once, and again after ten minutes in use', () => {
    expect(dueAt(fresh)).toBe(0);
    expect(dueAt(used(1420, 0, 0))).toBeNull();
    // An echo of either side is no use.
    expect(dueAt(used(1420, 1500, 1500))).toBeNull();
    expect(dueAt(used(1420, 50_000, 50_000))).toBe(600);
  });

  it('is measured again after ten minutes where it limits the MTU', () => {
    expect(dueAt(used(1310, 0, 0))).toBe(600);
  });

  it('is measured again soon where much is sent and little comes back', () => {
    expect(dueAt(used(1420, 300, 6000))).toBe(60);
    expect(dueAt(used(1420, 6000, 300))).toBe(600);
    const answered = trackPath(used(1420, 300, 6000), at(30_000, 30_000), 1420);
    expect(dueAt(answered)).toBe(600);
  });

  it('is measured again where it came to nothing, later each time, if it is used', () => {
    expect(dueAt(used(null, 0, 0))).toBeNull();
    expect(dueAt(used(null, 50_000, 50_000))).toBe(30);
    const often = [1, 2, 3, 4, 5, 6, 7].reduce((path) => recordMeasurement(path, null, 0), fresh);
    expect(dueAt({ ...often, use: 'unanswered' })).toBe(600);
  });

  it.each([
    [1_000, 8_000, 'used'],
    [999, 8_000, 'unanswered'],
    [8_000, 0, 'used'],
    [0, 8_000, 'unanswered'],
    [2_000, 3_679, 'none'],
  ])('is used, or unanswered, by what came back (%d bytes) for what was sent (%d bytes)', (rx, tx, use) => {
    const idle = trackPath(recordMeasurement(fresh, 1420, 0), at(0, 0), 1420);
    expect(trackPath(idle, at(rx, tx), 1420).use).toBe(use);
  });

  it('is not used by the echoes of its own measurement', () => {
    const measuredBefore = recordMeasurement(used(1420, 50_000, 50_000), 1420, 600);
    expect(measuredBefore).toMatchObject({ counters: null, use: 'none', triedAt: 600 });
    // The first counters after it are the base.
    expect(trackPath(measuredBefore, at(90_000, 90_000), 1420).use).toBe('none');
    expect(trackPath(trackPath(measuredBefore, at(90_000, 90_000), 1420), at(99_000, 99_000), 1420).use).toBe('used');
  });

  it('has no failures any more once a measurement came to something', () => {
    const failed = [1, 2, 3].reduce((path) => recordMeasurement(path, null, 0), fresh);
    expect([failed.failures, recordMeasurement(failed, 1310, 0).failures]).toEqual([3, 0]);
  });

  it('leads elsewhere when the endpoint does, and only then', () => {
    const elsewhere = trackPath(used(1310, 0, 0), at(0, 0, address('203.0.113.7')), 1420);
    expect([elsewhere.size, dueAt(elsewhere)]).toEqual([null, 0]);
    expect(trackPath({ ...used(1310, 0, 0), host: null }, at(0, 0), 1420)).toMatchObject({ size: 1310, host });
  });

  it('keeps its size when a measurement came to nothing, and counts again for a peer that was added again', () => {
    expect(recordMeasurement(used(1310, 0, 0), null, 9)).toMatchObject({ size: 1310, measuredAt: 0, failures: 1 });
    for (const [rxBytes, txBytes] of [
      [0, 60_000],
      [60_000, 0],
    ] as const) {
      const again = trackPath(used(1420, 50_000, 50_000), at(rxBytes, txBytes), 1420);
      expect(again).toMatchObject({ counters: { rxBytes, txBytes }, use: 'used' });
    }
  });
});

describe('the MTU that follows from paths', () => {
  const path = (number: number, size: number | null) => recordMeasurement(newPath(number, null), size, 0);

  it('is that of the narrowest one, but for those below the floor', () => {
    const paths = [path(2, 1420), path(3, 1310), path(4, 1280), path(5, 1199), path(6, 84), path(7, null)];
    expect(findNarrowest(paths, 1420, 1)).toMatchObject({ peer: 4, size: 1280 });
    expect(findNarrowest(paths.slice(0, 1), 1420, 1)).toBeNull();
    expect(findNarrowest(paths.slice(3), 1420, 1)).toBeNull();
    // It could not be measured for half an hour.
    expect(findNarrowest(paths, 1420, 1_800)).toMatchObject({ size: 1280 });
    expect(findNarrowest(paths, 1420, 1_801)).toBeNull();
    expect(findNarrowest([recordMeasurement(newPath(2, null), 1310, 1_000)], 1420, 2_800)).toMatchObject({
      size: 1310,
    });
  });

  it('is lowered at once, and raised every ten minutes at most', () => {
    expect(mayChange(1420, 1310, 99, 100)).toBe(true);
    expect(mayChange(1310, 1420, 99, 100)).toBe(false);
    expect(mayChange(1310, 1420, 99, 699)).toBe(true);
    expect(mayChange(1310, 1420, null, 100)).toBe(true);
  });
});
