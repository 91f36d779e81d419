import { expect, it } from 'vitest';
import { findNeverAnswered } from '../../../src/core/health/unanswered.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import type { PeerFailure } from '../../../src/core/map/model.ts';
import { bare, network, peer } from '../samples.ts';

const standby = peer(2, { name: 'dc', type: 'connector' });
const map = network([peer(1), standby]);
const deviceWith = (latestHandshake: number | null) => ({
  ...{ publicKey: null, listenPort: 51820, fwmark: null },
  peers: [{ publicKey: standby.publicKey, latestHandshake } as ActualPeer],
});

it.each<[string, number | null, readonly PeerFailure[], readonly string[]]>([
  ['with a handshake', 1, [], []],
  ['without one', null, [], ['dc']],
  ['without one that was never heard', null, [{ peer: 2, back: false }], ['dc']],
  ['without one that was heard before', null, [{ peer: 2, back: false, heard: 5 }], []],
  ['without one that was heard at the start of the clock', null, [{ peer: 2, back: false, heard: 0 }], []],
  ['without one that answers again', null, [{ peer: 2, back: true }], []],
  ['without one, where another peer was heard', null, [{ peer: 1, back: true, heard: 5 }], ['dc']],
])('a connector %s has answered, or never did', (_, latestHandshake, failed, never) => {
  expect([...findNeverAnswered(map, { device: deviceWith(latestHandshake) }, failed)]).toEqual(never);
});

it('a connector that this host reaches through another one counts as answering, and no other peer counts', () => {
  expect(findNeverAnswered(map, bare, []).size).toBe(0);
  const origin = network([peer(1), { ...standby, type: 'origin' }]);
  expect(findNeverAnswered(origin, { device: deviceWith(null) }, []).size).toBe(0);
});
