import { describe, expect, it, test } from 'vitest';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { type KnownPeer, type Pin, resolvePin } from '../../../src/core/pins/match-pins.ts';
import { describeDifference, findPinMismatches } from '../../../src/core/pins/pin-mismatch.ts';
import { address, keyPair, network, peer } from '../samples.ts';

const [key, otherKey] = [keyPair(2).publicKey, keyPair(22).publicKey];
const [identity, otherIdentity] = [7, 8].map((each) => makeIdentity(new Uint8Array(32).fill(each)).key);
if (!identity || !otherIdentity) throw new Error('no identities');
const known: KnownPeer = { peer: 2, address: address('10.77.0.2'), publicKey: key, identity, serial: 5 };
const claiming = (claimed: Partial<KnownPeer>, pinned: Partial<KnownPeer> = {}): Pin => {
  const pin = { ...known, ...pinned };
  return { ...pin, claimed: { ...pin, ...claimed } };
};

describe('a claim', () => {
  test.each([
    ['the key', claiming({ publicKey: otherKey }), `key ${otherKey} instead of ${key}`],
    ['the address', claiming({ address: address('10.77.0.9') }), 'address 10.77.0.9 instead of 10.77.0.2'],
    ['the id', claiming({ peer: 9 }), 'id 9 instead of 2'],
    ['the identity', claiming({ identity: otherIdentity }), `identity ${otherIdentity} instead of ${identity}`],
    ['no identity', claiming({ identity: null }), ''],
    ['a first identity', claiming({ identity: otherIdentity }, { identity: null }), ''],
    [
      'the key that is the id',
      claiming({ peer: otherKey, publicKey: otherKey }, { peer: key }),
      `key ${otherKey} instead of ${key}`,
    ],
    [
      'an id for a key',
      claiming({ peer: 9, publicKey: otherKey }, { peer: key }),
      `key ${otherKey} instead of ${key}, id 9 instead of ${key}`,
    ],
    [
      'two things',
      claiming({ peer: 9, address: address('10.77.0.9') }),
      'address 10.77.0.9 instead of 10.77.0.2, id 9 instead of 2',
    ],
  ])('says %s', (_, pin, text) => {
    expect(pin.claimed && describeDifference({ pin, claimed: pin.claimed })).toBe(text);
  });

  it('has the name that the service gives', () => {
    const other = { ...known, claimed: null };
    const pins = [other, claiming({ peer: 3, publicKey: otherKey }), claiming({ peer: 99 })];
    const [named, unnamed, ...more] = findPinMismatches(network([peer(2), peer(3, { name: 'web' })]), pins);
    expect([named?.name, unnamed?.name, more]).toEqual(['web', 'peer 99', []]);
    expect(findPinMismatches(network([peer(2)]), [other])).toEqual([]);
  });

  test.each([
    ['peer', { id: 9 }, { id: 10 }],
    ['address', { address: address('10.77.0.9') }, { address: address('10.77.0.10') }],
    ['publicKey', { publicKey: otherKey }, { publicKey: keyPair(23).publicKey }],
    ['identity', { identity: otherIdentity }, { identity: makeIdentity(new Uint8Array(32).fill(9)).key }],
  ])('follows the service when its %s changes again, and stays the same object otherwise', (field, first, second) => {
    const listed = peer(2, { identity });
    const pin: Pin = { ...known, serial: 0, claimed: null };
    const once = resolvePin(pin, { ...listed, ...first }, true);
    expect(once.claimed).toMatchObject({ [field]: Object.values(first)[0] });
    expect(resolvePin(once, { ...listed, ...first }, true)).toBe(once);
    expect(resolvePin(once, { ...listed, ...second }, true).claimed).toMatchObject({
      [field]: Object.values(second)[0],
    });
    expect(resolvePin(pin, listed, true)).toBe(pin);
  });
});
