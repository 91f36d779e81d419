import { describe, expect, it, test } from 'vitest';
import { Refused } from '../../../src/core/errors/index.ts';
import { findExpired, hasDeadlines } from '../../../src/core/map/expiry.ts';
import { movesRange } from '../../../src/core/map/map-validation.ts';
import type { SkippedPeer } from '../../../src/core/map/model.ts';
import { findFormerSelf, hasOtherKey, listOwnPeer } from '../../../src/core/map/own-peer.ts';
import { findOwnSkipped } from '../../../src/core/map/skipped-peers.ts';
import { refusalOf } from '../../../src/core/map/sync-refusal.ts';
import { address, keyPair, network, peer, prefix } from '../samples.ts';

const [former, present] = [keyPair(5), keyPair(105)];
const own = peer(5, { publicKey: present.publicKey });
const self = { keyPair: present, rotation: null, membership: { peer: own }, keySerial: 7 };
const proof = (serial: number) => ({ serial, signature: '' });

describe('a map that is older than the key of this host', () => {
  const find = (changes: Parameters<typeof peer>[1]) =>
    findFormerSelf(network([peer(5, { publicKey: former.publicKey, ...changes })]), self)?.id;

  it.each<[string, Parameters<typeof peer>[1], number | undefined]>([
    ['no proof', {}, 5],
    ['an older proof', { proof: proof(6) }, 5],
    ['a proof of the same time', { proof: proof(7) }, undefined],
    ['a newer proof, of a copy', { proof: proof(8) }, undefined],
    ['another address', { address: address('10.77.0.99') }, undefined],
    ['another id', { id: 99 }, undefined],
    ['the present key', { publicKey: present.publicKey }, undefined],
  ])('lists it with its id and address, and %s', (_, changes, id) => expect(find(changes)).toBe(id));

  it('has another key in its place only at its id and its address', () => {
    const has = (changes: Parameters<typeof peer>[1]) => hasOtherKey(network([peer(5, changes)]), self);
    expect([has({}), has({ id: 99 }), has({ address: address('10.77.0.99') })]).toEqual([true, false, false]);
  });

  it('is no map of the service once this host has changed its own row', () => {
    const map = network([own]);
    const listed = listOwnPeer(map, { ...self, rotation: { keyPair: former } }, former.publicKey, null);
    expect([map.revision, listed.revision]).toEqual(['"1"', null]);
    expect(listOwnPeer(map, self, present.publicKey, null).revision).toBe('"1"');
  });
});

describe('a skipped peer', () => {
  const blank: SkippedPeer = { id: null, name: null, publicKey: null, address: null, reason: 'has no key' };
  const find = (changes: Partial<SkippedPeer>, host: Parameters<typeof findOwnSkipped>[1] = self) =>
    findOwnSkipped(
      {
        ...network([]),
        skipped: [
          { ...blank, id: 9 },
          { ...blank, ...changes },
        ],
      },
      host,
    ) !== undefined;

  it.each<[string, Partial<SkippedPeer>, boolean]>([
    ['id', { id: 5 }, true],
    ['address', { address: '10.77.0.5' }, true],
    ['key', { publicKey: present.publicKey }, true],
    ['name alone', { name: own.name }, false],
    ['nothing', {}, false],
  ])('is this host by its %s', (_, changes, isOwn) => expect(find(changes)).toBe(isOwn));

  it('is this host by either key of a rotation, and by no field that neither has', () => {
    expect(find({ publicKey: former.publicKey })).toBe(false);
    expect(find({ publicKey: former.publicKey }, { ...self, rotation: { keyPair: former } })).toBe(true);
    expect(find({}, { ...self, membership: null })).toBe(false);
  });
});

describe('peers that expire', () => {
  const map = network([own, peer(2, { expiresAt: 1_000 }), peer(3, { expiresAt: 2_000 }), peer(4)]);
  const expired = (now: number, host = own) => findExpired({ ...self, membership: { map, peer: host } }, now);

  it('have expired from that instant on, but for this host, which the service removes itself', () => {
    expect([999, 1_000, 1_999, 2_000].map((now) => expired(now))).toEqual([[], [2], [2], [2, 3]]);
    expect(expired(5_000, peer(3))).toEqual([2]);
  });

  it.each([
    ['nothing', network([own, peer(4)]), false],
    ['a peer', network([own, peer(4, { expiresAt: 1 })]), true],
    ['this host alone', network([{ ...own, expiresAt: 1 }]), true],
    ['the map itself', network([own], { maxAge: 3600 }), true],
  ])('are deadlines of the clock of the service, as is the age of a map: %s', (_, of, has) => {
    expect(hasDeadlines(of)).toBe(has);
  });
});

test.each([
  ['10.77.0.0/24', '10.77.0.0/24', false],
  ['10.77.0.0/24', '10.77.0.0/25', false],
  ['10.77.0.0/24', '10.77.0.0/23', true],
  ['10.77.0.0/24', '10.78.0.0/24', true],
  ['10.77.0.5/32', '10.0.0.0/8', false],
  ['10.77.0.5/32', '10.77.0.0/24', false],
])('a range %s that becomes %s gains addresses: %s', (known, newer, moves) => {
  const [one, other] = [known, newer].map((cidr) => network([], { cidr: prefix(cidr) }));
  expect(one && other && movesRange(one, other)).toBe(moves);
});

test.each([
  [401, 'token'],
  [403, 'forbidden'],
  [404, 'gone'],
  [400, null],
  [409, null],
  [410, null],
  [429, null],
  [500, null],
])('a sync that is refused with %d is a refusal: %s', (status, refusal) => {
  expect(refusalOf(new Refused(status, 'the map', 'no', null))).toBe(refusal);
});
