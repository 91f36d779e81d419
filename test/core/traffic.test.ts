import { describe, expect, it } from 'vitest';
import type { ActualPeer } from '../../src/core/actual.ts';
import { followTraffic, isSilent, type Traffic } from '../../src/core/traffic.ts';
import { keyPair } from './samples.ts';

const counters = (rxBytes: number, txBytes: number): ActualPeer => ({
  publicKey: keyPair(2).publicKey,
  presharedKey: null,
  endpoint: null,
  allowedIps: [],
  keepalive: null,
  latestHandshake: 1,
  rxBytes,
  txBytes,
});

/** Whether a peer with these counters, looked at in these seconds, is silent at the last look. */
function silentAfter(...looks: (readonly [second: number, rx: number, tx: number])[]): boolean {
  let traffic: Traffic | undefined;
  for (const [second, rx, tx] of looks) traffic = followTraffic(traffic, counters(rx, tx), second);
  return traffic !== undefined && isSilent(traffic, looks.at(-1)?.[0] ?? 0);
}

describe('a peer is silent', () => {
  it('when it was sent to, and nothing came for longer than a keepalive and a new handshake take', () => {
    expect(silentAfter([0, 100, 100], [10, 100, 132], [26, 100, 132])).toBe(true);
  });

  it('from the time on that the sending was seen, not from the time that it was last heard', () => {
    expect(silentAfter([0, 100, 100], [300, 100, 132])).toBe(false);
    expect(silentAfter([0, 100, 100], [300, 100, 132], [315, 100, 164])).toBe(false);
    expect(silentAfter([0, 100, 100], [300, 100, 132], [316, 100, 164])).toBe(true);
  });

  it('not while nobody sent to it', () => {
    expect(silentAfter([0, 100, 100], [1000, 100, 100], [2000, 100, 100])).toBe(false);
  });

  it('not when it is heard again', () => {
    expect(silentAfter([0, 100, 100], [10, 100, 132], [60, 132, 200], [70, 132, 200])).toBe(false);
  });

  it('not by the counters of a peer that was taken out and added again', () => {
    expect(silentAfter([0, 100, 100], [10, 100, 132], [60, 0, 0], [70, 0, 0])).toBe(false);
  });
});
