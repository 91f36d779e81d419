import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { peerStateOf } from '../../../src/core/health/peer-health.ts';
import { isSilent, measureInflow, type Traffic, trackTraffic } from '../../../src/core/health/traffic.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { keyPair } from '../samples.ts';
import { End } from '../wireguard-timers.ts';

type Look = readonly [second: number, rx: number, tx: number];

/** Whether a peer with these counters, looked at in these seconds, is silent at the last look. */
const silentAfter = (...looks: Look[]) => silentWith(null, ...looks);

function silentWith(keepalive: number | null, ...looks: Look[]): boolean {
  let traffic: Traffic | undefined;
  for (const [second, rxBytes, txBytes] of looks) {
    traffic = trackTraffic(traffic, { rxBytes, txBytes, keepalive }, second);
  }
  return traffic !== undefined && isSilent(traffic, looks.at(-1)?.[0] ?? 0);
}

describe('a peer is silent', () => {
  it('it is when it was sent to, and nothing came for longer than a keepalive and a new handshake take', () => {
    expect(silentAfter([0, 100, 100], [10, 100, 228], [26, 100, 228])).toBe(true);
  });

  it('from the time on that the sending was seen, not from the time that it was last heard', () => {
    expect(silentAfter([0, 100, 100], [300, 100, 228])).toBe(false);
    expect(silentAfter([0, 100, 100], [300, 100, 228], [315, 100, 356])).toBe(false);
    expect(silentAfter([0, 100, 100], [300, 100, 228], [316, 100, 356])).toBe(true);
  });

  it('not while nothing was sent to it', () => {
    expect(silentAfter([0, 100, 100], [1000, 100, 100], [2000, 100, 100])).toBe(false);
  });

  it('not when it is heard again', () => {
    expect(silentAfter([0, 100, 100], [10, 100, 228], [60, 132, 300], [70, 132, 300])).toBe(false);
  });

  it('not by the counters of a peer that was taken out and added again', () => {
    expect(silentAfter([0, 100, 100], [10, 100, 228], [60, 0, 0], [70, 0, 0])).toBe(false);
  });

  it('not because it leaves keepalives without an answer', () => {
    expect(silentWith(25, [0, 100, 100], [30, 100, 132], [60, 100, 164], [120, 100, 228])).toBe(false);
    expect(silentAfter([0, 100, 100], [10, 100, 132], [20, 100, 164], [60, 100, 164])).toBe(false);
  });

  it('it is when more was sent than keepalives, or a handshake was', () => {
    expect(silentWith(25, [0, 100, 100], [30, 100, 132], [60, 100, 292], [80, 100, 292])).toBe(true);
    expect(silentWith(25, [0, 100, 100], [30, 100, 132], [60, 100, 280], [80, 100, 280])).toBe(true);
    expect(silentAfter([0, 100, 100], [10, 100, 228], [26, 100, 228])).toBe(true);
  });

  it.each([
    [null, 30, 2],
    [25, 24, 3],
    [25, 25, 4],
    [25, 50, 5],
    [5, 49, 12],
  ])('by more keepalives than are due: with %s s, after %d s, %d are', (keepalive, seconds, due) => {
    const isSilentAfter = (packets: number) =>
      silentWith(keepalive, [0, 100, 100], [seconds, 100, 100 + 32 * packets], [seconds + 16, 100, 100 + 32 * packets]);
    expect([isSilentAfter(due), isSilentAfter(due + 1)]).toEqual([false, true]);
  });

  it('not because its keepalive was another before', () => {
    let traffic = trackTraffic(undefined, { rxBytes: 100, txBytes: 100, keepalive: 5 }, 0);
    traffic = trackTraffic(traffic, { rxBytes: 100, txBytes: 260, keepalive: 5 }, 25);
    traffic = trackTraffic(traffic, { rxBytes: 100, txBytes: 260, keepalive: null }, 30);
    expect(isSilent(traffic, 60)).toBe(false);
  });
});

describe('both ends of a tunnel', () => {
  const keepalives = fc.constantFrom(null, 5, 25, 60, 300);
  const moments = fc.array(fc.integer({ min: 1, max: 1200 }), { maxLength: 6 });

  /** The states that looks `every` so many seconds find at one end, the last ones from `since` on. */
  function watch(ends: readonly [End, End], every: number, events: (now: number) => void, until = 1200): string[] {
    const [end] = ends;
    const states: string[] = [];
    let traffic: Traffic | undefined;
    for (let now = 0; now <= until; now += 0.5) {
      events(now);
      for (const each of ends) each.tick(now);
      if (now % every !== 0) continue;
      traffic = trackTraffic(traffic, end, now);
      states.push(peerStateOf(end, now, isSilent(traffic, now) ? end.rxBytes : undefined));
    }
    return states;
  }

  it('are never stale while both live, with either side as keepalive sender and initiator', () => {
    fc.assert(
      fc.property(keepalives, keepalives, fc.boolean(), moments, fc.constantFrom(5, 7, 30), (...drawn) => {
        const [one, other, begins, sent, every] = drawn;
        const ends = End.pair(one, other);
        ends[begins ? 0 : 1].send(0, 'data');
        const states = watch(ends, every, (now) => {
          if (sent.includes(now)) ends[now % 2]?.send(now, 'data');
        });
        expect(new Set(states)).not.toContain('stale');
      }),
      { numRuns: 300 },
    );
  });

  it('are stale soon after data was sent to one that is off, and with keepalives without any', () => {
    fc.assert(
      fc.property(keepalives, keepalives, fc.boolean(), fc.integer({ min: 1, max: 400 }), (...drawn) => {
        const [one, other, sends, end] = drawn;
        fc.pre(sends || one !== null);
        const ends = End.pair(one, other);
        ends[0].send(0, 'data');
        const deadline = end + (sends ? 60 : 180 + 2 * (one ?? 0) + 30);
        const states = watch(
          ends,
          5,
          (now) => {
            ends[1].isOff = now >= end;
            if (sends && now >= end && now % 5 === 0) ends[0].send(now, 'data');
          },
          Math.ceil(deadline / 5) * 5,
        );
        expect(states.at(-1)).toBe('stale');
      }),
      { numRuns: 300 },
    );
  });
});

const one = keyPair(1).publicKey;
const other = keyPair(2).publicKey;

function at(rxBytes: number, publicKey = one): ActualPeer {
  const nothing = { presharedKey: null, endpoint: null, allowedIps: [], keepalive: null, latestHandshake: null };
  return { publicKey, rxBytes, txBytes: 0, ...nothing };
}

it('lists the senders, the largest first, in bytes per second', () => {
  const inflow = measureInflow([at(500), at(0, other)], [at(8_500), at(20_000, other)], 2);
  expect(inflow).toEqual([
    { publicKey: other, rate: 10_000 },
    { publicKey: one, rate: 4_000 },
  ]);
});

it('ignores a handshake, a keepalive and two liveness probes', () => {
  expect(measureInflow([at(0)], [at(148 + 32 + 2 * 4 * 96)], 1)).toEqual([]);
});

it('counts twenty pings per second as use', () => {
  expect(measureInflow([at(0)], [at(20 * 128)], 1)).toMatchObject([{ publicKey: one }]);
});

it('counts more than a thousand bytes per second as use, and no less', () => {
  expect([1_000, 1_001].map((bytes) => measureInflow([at(0)], [at(bytes)], 1).length)).toEqual([0, 1]);
  expect([5_000, 5_001].map((bytes) => measureInflow([at(0)], [at(bytes)], 5).length)).toEqual([0, 1]);
});

it('evaluates each peer on its own: a hundred idle peers stay idle', () => {
  const many = (rxBytes: number) => Array.from({ length: 100 }, (_, n) => at(rxBytes, keyPair(n + 1).publicKey));
  expect(measureInflow(many(0), many(900), 1)).toEqual([]);
});

it('takes what a peer sent since it was added, or added again', () => {
  expect(measureInflow([], [at(5_000)], 1)).toEqual([{ publicKey: one, rate: 5_000 }]);
  expect(measureInflow([at(90_000)], [at(5_000)], 1)).toEqual([{ publicKey: one, rate: 5_000 }]);
  expect(measureInflow([at(90_000)], [], 1)).toEqual([]);
});
