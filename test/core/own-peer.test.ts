import { describe, expect, test } from 'vitest';
import { findOwnPeer, listOwnPeer } from '../../src/core/own-peer.ts';
import { holdPins } from '../../src/core/pins.ts';
import { keyPair, network, peer } from './samples.ts';

const [older, newer, foreign] = [keyPair(5), keyPair(105), keyPair(205)];
const own = peer(5, { publicKey: newer.publicKey });
/** Another peer, listed before this host, that says that a key of this host is its own. */
const thief = peer(1, { publicKey: older.publicKey });
const self = { keyPair: newer, rotation: { keyPair: older }, membership: { peer: own } };

describe('a host whose key another peer lists', () => {
  const map = network([thief, own]);

  test('is the one with its id', () => {
    expect(findOwnPeer(map, self)).toBe(own);
  });

  test('changes its own row alone', () => {
    const { peers } = listOwnPeer(map, self, older.publicKey, null);
    expect(peers).toEqual([thief, { ...own, publicKey: older.publicKey }]);
  });

  test('is not the other one either where it is listed with a key that it does not have', () => {
    expect(findOwnPeer(network([thief, { ...own, publicKey: foreign.publicKey }]), self)).toBeUndefined();
  });

  test('pins the other one, and not itself', () => {
    const holder = { rule: 'strict' as const, self: { id: own.id, keys: [newer.publicKey, older.publicKey] } };
    expect(holdPins(map, [], holder).pins.map(({ peer: id }) => id)).toEqual([thief.id]);
  });
});

describe('where ids tell nothing', () => {
  test.each([
    ['no peer has its id', { id: 'other', peers: [] }],
    ['another peer has its id now', { id: 'other', peers: [peer(7, { id: own.id })] }],
  ])('as %s, a host is known by its keys', (_, { id, peers }) => {
    const renamed = { ...own, id };
    expect(findOwnPeer(network([...peers, renamed]), self)).toBe(renamed);
  });

  test('a host that has not joined is known by its keys', () => {
    expect(findOwnPeer(network([peer(2), own]), { ...self, membership: null })).toBe(own);
  });
});
