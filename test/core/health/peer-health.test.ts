import { describe, expect, it } from 'vitest';
import { findRelays, peerStateOf } from '../../../src/core/health/peer-health.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { peer, prefix } from '../samples.ts';

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

it('a peer has a relay if another has its address, or the range and it is no peer itself', () => {
  const cidr = prefix('10.77.0.0/24');
  const [hub, second, direct, hidden] = [1, 2, 3, 4].map((number) => peer(number)) as [Peer, Peer, Peer, Peer];
  const relaysOf = (hubIps: readonly string[], directIps: readonly string[], secondIps = ['10.77.0.2/32']) => {
    const allowed = (from: Peer, texts: readonly string[]) => ({
      ...{ publicKey: from.publicKey, allowedIps: texts.map(prefix) },
    });
    const reached = [allowed(hub, hubIps), allowed(direct, directIps), allowed(second, secondIps)];
    const found = findRelays({ cidr, peers: [hub, second, direct, hidden] }, reached);
    return [hub, second, direct, hidden].map(({ publicKey }) => found.get(publicKey) ?? null);
  };
  const whole = ['10.77.0.0/24', '10.77.0.1/32'];
  expect(relaysOf(whole, ['10.77.0.3/32'])).toEqual([null, null, null, hub.publicKey]);
  // A peer that does not answer has lost its address to the relay.
  expect(relaysOf([...whole, '10.77.0.3/32'], [])).toEqual([null, null, hub.publicKey, hub.publicKey]);
  // A connector in the map of a service may have routes alone, and is reached nevertheless.
  expect(relaysOf(whole, ['192.168.50.0/24'])).toEqual([null, null, null, hub.publicKey]);
  expect(relaysOf(['10.77.0.1/32'], ['10.77.0.3/32'], ['10.77.0.2/32', '10.77.0.4/32'])).toEqual([
    null,
    null,
    null,
    second.publicKey,
  ]);
});
