import { describe, expect, it } from 'vitest';
import {
  isInUse,
  isUnanswered,
  type PeerActivity,
  trackActivity,
} from '../../../../src/core/health/report/peer-activity.ts';
import type { ActualPeer } from '../../../../src/core/host-state/actual.ts';
import { keyPair } from '../../samples.ts';

const { publicKey } = keyPair(2);

type Look = readonly [second: number, rx: number, tx: number];

function look(...looks: Look[]): PeerActivity {
  let activity: ReadonlyMap<typeof publicKey, PeerActivity> = new Map();
  for (const [second, rxBytes, txBytes] of looks) {
    const peer: ActualPeer = {
      ...{ publicKey, presharedKey: null, endpoint: null, allowedIps: [], keepalive: null },
      ...{ latestHandshake: null, rxBytes, txBytes },
    };
    activity = trackActivity(activity, [peer], second);
  }
  return activity.get(publicKey) ?? expect.unreachable();
}

describe('rates', () => {
  it('are measured over twenty seconds at least, however often the counters are read', () => {
    expect(look([0, 0, 0]).rates).toBeNull();
    expect(look([0, 0, 0], [1, 9_000, 9_000]).rates).toBeNull();
    expect(look([0, 0, 0], [1, 9_000, 9_000], [20, 40_000, 10_000]).rates).toEqual({ rx: 2_000, tx: 500 });
    expect(look([0, 0, 0], [20, 40_000, 0], [21, 90_000, 0]).rates).toEqual({ rx: 2_000, tx: 0 });
  });

  it('begin again where a peer was taken out and added again', () => {
    expect(look([0, 9_000, 9_000], [30, 100, 100]).rates).toBeNull();
    expect(look([0, 9_000, 9_000], [30, 9_500, 100]).rates).toBeNull();
    expect(look([0, 9_000, 9_000], [30, 100, 9_500]).rates).toBeNull();
  });
});

describe('a peer', () => {
  it('is unanswered for as long as what was sent lately has no answer', () => {
    const asked: Look[] = [
      [0, 100, 100],
      [30, 100, 248],
      [60, 100, 396],
    ];
    expect(isUnanswered(look(...asked), 60)).toBe(true);
    expect(isUnanswered(look(...asked, [90, 100, 396]), 240)).toBe(true);
    expect(isUnanswered(look(...asked, [90, 100, 396]), 241)).toBe(false);
    expect(isUnanswered(look(...asked, [90, 192, 396]), 90)).toBe(false);
  });

  it('is not in use before anything is sent to it', () => {
    expect(isInUse(look([0, 0, 0], [30, 148, 0]), 30)).toBe(false);
    expect(isInUse(look([0, 0, 148]), 30)).toBe(true);
    // Passes may follow each other more closely than a rate is measured.
    expect(isInUse(look([0, 0, 0], [5, 0, 148], [10, 0, 148]), 185)).toBe(true);
    expect(isInUse(look([0, 0, 0], [5, 0, 148], [10, 0, 148]), 186)).toBe(false);
  });
});
