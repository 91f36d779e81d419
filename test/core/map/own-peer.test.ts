import { describe, expect, test } from 'vitest';
import { makeIdentity, proveKey } from '../../../src/core/crypto/identity.ts';
import { findOwnPeer, hasOtherKey, listOwnPeer } from '../../../src/core/map/own-peer.ts';
import { applyPins } from '../../../src/core/pins/pins.ts';
import { keyPair, network, peer } from '../samples.ts';

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

  test('has the proof of a changed key in its row, and else none', () => {
    const proof = proveKey(makeIdentity(new Uint8Array(32).fill(7)), older.publicKey, new Date(9));
    const proven = listOwnPeer(map, self, older.publicKey, proof);
    expect(proven.peers[1]).toEqual({ ...own, publicKey: older.publicKey, proof });
    expect(listOwnPeer(proven, self, newer.publicKey, null).peers[1]).toEqual(own);
  });

  test('leaves a map as it is that has the key already, or does not list this host', () => {
    expect(listOwnPeer(map, self, newer.publicKey, null)).toBe(map);
    const gone = network([peer(2)]);
    expect(listOwnPeer(gone, self, older.publicKey, null)).toBe(gone);
  });

  test('is not the other one either where it is listed with a key that it does not have', () => {
    expect(findOwnPeer(network([thief, { ...own, publicKey: foreign.publicKey }]), self)).toBeUndefined();
  });

  test('pins the other one, and not itself', () => {
    const holder = { rule: 'strict' as const, self: { id: own.id, keys: [newer.publicKey, older.publicKey] } };
    expect(applyPins(map, [], holder).pins.map(({ peer: id }) => id)).toEqual([thief.id]);
  });
});

describe('without usable ids', () => {
  test.each([
    ['no peer has its id', { id: 'other', peers: [] }],
    ['another peer has its id now', { id: 'other', peers: [peer(7, { id: own.id })] }],
  ])('as %s, a host is identified by its keys', (_, { id, peers }) => {
    const renamed = { ...own, id };
    expect(findOwnPeer(network([...peers, renamed]), self)).toBe(renamed);
  });

  test('an older key counts only while the keys change', () => {
    const listed = network([peer(9, { publicKey: older.publicKey })]);
    expect(findOwnPeer(listed, { ...self, membership: null })).toBe(listed.peers[0]);
    expect(findOwnPeer(listed, { ...self, rotation: null, membership: null })).toBeUndefined();
  });

  test('a host that has not joined is identified by its keys', () => {
    expect(findOwnPeer(network([peer(2), own]), { ...self, membership: null })).toBe(own);
  });
});

describe('a map that lacks this host', () => {
  test('lists another key in its place where the state is older than a change of keys, and says so for good', () => {
    const later = network([thief, { ...own, publicKey: foreign.publicKey }]);
    expect(findOwnPeer(later, self)).toBeUndefined();
    expect(hasOtherKey(later, self)).toBe(true);
  });

  test('lists nothing in its place where the host was removed, or another peer has its id', () => {
    for (const peers of [[thief], [thief, { ...peer(9), id: own.id }]])
      expect(hasOtherKey(network(peers), self)).toBe(false);
  });
});
