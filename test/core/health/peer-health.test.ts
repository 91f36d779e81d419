import { describe, expect, it } from 'vitest';
import { peerStateOf } from '../../../src/core/health/peer-health.ts';

const now = 1_800_000_000;
const fresh = { latestHandshake: now - 100, keepalive: null, rxBytes: 4096 };

describe('a peer', () => {
  it.each([
    ['never', 'had no handshake', { ...fresh, latestHandshake: null }, undefined],
    ['connected', 'has a session', fresh, undefined],
    ['connected', 'has the oldest session there can be', { ...fresh, latestHandshake: now - 180 }, undefined],
    ['idle', 'has an old one, and no traffic that renews it', { ...fresh, latestHandshake: now - 181 }, undefined],
    [
      'idle',
      'has one that the next keepalive renews',
      { ...fresh, latestHandshake: now - 220, keepalive: 25 },
      undefined,
    ],
    [
      'stale',
      'has one that keepalives did not renew',
      { ...fresh, latestHandshake: now - 221, keepalive: 25 },
      undefined,
    ],
    ['stale', 'has a session and does not answer', fresh, 4096],
    ['connected', 'was silent and has been heard since', fresh, 4095],
    ['connected', 'was silent before its counters began again', { ...fresh, rxBytes: 92 }, 4096],
    ['stale', 'did not answer when it was last sent to', { ...fresh, latestHandshake: now - 900 }, 4096],
    ['never', 'was silent before it was made again', { ...fresh, latestHandshake: null, rxBytes: 0 }, 0],
  ] as const)('is %s when it %s', (state, _how, peer, silentAt) => {
    expect(peerStateOf(peer, now, silentAt)).toBe(state);
  });
});
