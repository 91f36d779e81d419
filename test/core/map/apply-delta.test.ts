import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyDelta, findInvalid } from '../../../src/core/map/apply-delta.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import { address, dialled, network, peer, prefix } from '../samples.ts';

/** A peer in one of several states: the id tells who it is, the variant what is known of it. */
const anyPeer = fc
  .record({ number: fc.integer({ min: 1, max: 30 }), variant: fc.integer({ min: 0, max: 3 }) })
  .map(({ number, variant }) =>
    peer(number, { name: `v${variant}`, ...(variant > 1 && { endpoint: dialled(variant) }) }),
  );
const anyPeers = fc
  .uniqueArray(anyPeer, { selector: ({ id }) => id, maxLength: 20 })
  .map((peers) => peers.toSorted((a, b) => Number(a.id) - Number(b.id)));

/** What a service that lists its peers by id tells of the way from one map to the other. */
function deltaOf(from: NetworkMap, to: NetworkMap) {
  const before = new Map(from.peers.map((each) => [each.id, JSON.stringify(each)]));
  const ids = new Set(to.peers.map(({ id }) => id));
  return {
    ...to,
    peers: to.peers.filter((each) => before.get(each.id) !== JSON.stringify(each)),
    removed: from.peers.map(({ id }) => id).filter((id) => !ids.has(id)),
  };
}

const byId = ({ peers, ...rest }: NetworkMap) => ({
  ...rest,
  peers: peers.toSorted((a, b) => Number(a.id) - Number(b.id)),
});

describe('a change of a map', () => {
  it('makes of the earlier map the later one', () => {
    fc.assert(
      fc.property(anyPeers, anyPeers, (before, after) => {
        const from = network(before);
        const to = network(after, { name: 'moved', revision: '"2"', routes: [prefix('192.168.60.0/24')] });
        expect(byId(applyDelta(from, deltaOf(from, to)))).toEqual(byId(to));
      }),
    );
  });

  it('leaves the peers that it does not name as they are, in their places, and puts new ones last', () => {
    const [one, two, three, four] = [peer(1), peer(2), peer(3), peer(4)];
    const moved = { ...two, endpoint: dialled(9) };
    const map = applyDelta(network([one, two, three]), { ...network([]), peers: [moved, four], removed: [3] });
    expect(map.peers).toEqual([one, moved, four]);
    expect(map.peers[0]).toBe(one);
  });

  it('may remove an unknown peer, and does not mutate its arguments', () => {
    const before = network([peer(1)]);
    const text = JSON.stringify(before);
    expect(applyDelta(before, { ...network([]), revision: '"9"', removed: [77] })).toEqual(
      network([peer(1)], { revision: '"9"' }),
    );
    expect(JSON.stringify(before)).toBe(text);
  });
});

it('a change removes a peer that it also lists', () => {
  const again = peer(2, { name: 'again' });
  expect(applyDelta(network([peer(1), peer(2)]), { ...network([]), peers: [again], removed: [2] }).peers).toEqual([
    peer(1),
  ]);
});

describe('the flaw of a map', () => {
  const flawOf = (...peers: Peer[]) => findInvalid(network(peers), 3);

  it('is none where every peer has its own id, key and address in the range', () => {
    expect(flawOf(peer(1), peer(2), peer(3))).toBeNull();
    expect(flawOf()).toBeNull();
  });

  it.each([
    ['too many peers', [peer(1), peer(2), peer(3), peer(4)], 'has more than 3 peers'],
    ['an id twice', [peer(1), peer(2, { id: 1 })], 'has two peers with one id'],
    ['an id once as a number and once as text', [peer(1), peer(2, { id: '1' })], 'has two peers with one id'],
    ['a key twice', [peer(1), peer(2, { publicKey: peer(1).publicKey })], 'has two peers with one public key'],
    ['an address twice', [peer(1), peer(2, { address: peer(1).address })], 'has two peers with one address'],
    ['an address outside', [peer(1), peer(2, { address: address('10.78.0.2') })], 'has a peer outside its range'],
  ])('is named: %s', (_, peers, flaw) => expect(flawOf(...peers)).toBe(flaw));
});
