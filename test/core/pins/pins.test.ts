import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeIdentity, proveKey } from '../../../src/core/crypto/identity.ts';
import { applyDelta } from '../../../src/core/map/apply-delta.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import type { PinRule } from '../../../src/core/map/options.ts';
import type { Pin } from '../../../src/core/pins/match-pins.ts';
import {
  acceptMismatch,
  applyPins,
  completePins,
  isMapAltered,
  type PinContext,
  reapplyPins,
} from '../../../src/core/pins/pins.ts';
import { address, dialled, keyPair, network, peer } from '../samples.ts';

const identity = makeIdentity(new Uint8Array(32).fill(7));
const other = makeIdentity(new Uint8Array(32).fill(8));
const self = { id: 1, keys: [keyPair(1).publicKey] };
const report: PinContext = { rule: 'report', self };
const strict: PinContext = { rule: 'strict', self };
const key = (number: number) => keyPair(number).publicKey;
const proof = (number: number, serial: number, by = identity) => proveKey(by, key(number), new Date(serial));

/** A network in which peer 2 proves its keys, and its last word has the serial 5. */
const two = peer(2, { identity: identity.key, proof: proof(2, 5), endpoint: dialled(2) });
const three = peer(3);
const before = network([peer(1), two, three]);
const { pins } = applyPins(before, [], strict);
const received = (...peers: Peer[]) => network([peer(1), ...peers], { revision: '"2"' });
const pinOf = (number: number, from: readonly Pin[]) => from.find((pin) => pin.peer === number);
const rows = ({ peers }: NetworkMap) => peers.map(({ id, publicKey, address: at }) => [id, publicKey, at]);

describe('a peer that was never seen', () => {
  it('is pinned as first received, with its identity and its latest serial', () => {
    expect(pins).toEqual([
      { peer: 2, address: two.address, publicKey: key(2), identity: identity.key, serial: 5, claimed: null },
      { peer: 3, address: three.address, publicKey: key(3), identity: null, serial: 0, claimed: null },
    ]);
  });

  it('joins the pinned peers, which stay in the order of their ids', () => {
    const held = applyPins(received(peer(4), three, two), pins, strict);
    expect(held.pins.map((pin) => pin.peer)).toEqual([2, 3, 4]);
    expect(held.pins[0]).toBe(pins[0]);
  });

  it('is not this host, under whichever key it is listed', () => {
    for (const own of [peer(1), peer(1, { publicKey: key(9) }), peer(9, { publicKey: key(1) })]) {
      expect(applyPins(network([own, two, three]), pins, strict).pins).toBe(pins);
    }
  });
});

describe.each<[PinRule, PinContext]>([
  ['report', report],
  ['strict', strict],
])('with %s is accepted', (_, holder) => {
  it.each<[string, Peer]>([
    ['the same again', two],
    [
      'another name, endpoint, type and routes',
      { ...two, name: 'x', endpoint: dialled(9), type: 'connector', routes: [] },
    ],
    ['an identity that is received no more', peer(2)],
    ['an older word for the same key', { ...two, proof: proof(2, 4) }],
    ['a word of another peer for the same key', { ...two, proof: proof(2, 9, other) }],
  ])('%s', (_name, changed) => {
    const map = received(changed, three);
    const held = applyPins(map, pins, holder);
    expect(held.map).toBe(map);
    expect(held.pins).toBe(pins);
  });

  it('another key by the newer word of its host', () => {
    const map = received({ ...two, publicKey: key(22), proof: proof(22, 6) }, three);
    const held = applyPins(map, pins, holder);
    expect(held.map).toBe(map);
    expect(pinOf(2, held.pins)).toMatchObject({ publicKey: key(22), serial: 6, claimed: null });
  });

  it('another id at the same address, by the newer word of its host', () => {
    const map = received({ ...two, id: 7, publicKey: key(22), proof: proof(22, 6) }, three);
    const held = applyPins(map, pins, holder);
    expect(held.map).toBe(map);
    expect(pinOf(7, held.pins)).toMatchObject({ publicKey: key(22), serial: 6, claimed: null });
  });

  it('a newer word for the same key, after which the older ones are of no use', () => {
    const held = applyPins(received({ ...two, proof: proof(2, 9) }, three), pins, holder);
    expect(pinOf(2, held.pins)).toMatchObject({ serial: 9, claimed: null });
    const replayed = applyPins(received({ ...two, publicKey: key(22), proof: proof(22, 8) }, three), held.pins, holder);
    expect(pinOf(2, replayed.pins)?.claimed).not.toBeNull();
  });

  it('a peer that leaves; it stays pinned, and claims nothing while it is gone', () => {
    const claiming = applyPins(received({ ...two, publicKey: key(22) }, three), pins, holder);
    const gone = applyPins(received(three), claiming.pins, holder);
    expect(rows(gone.map)).toEqual(rows(received(three)));
    expect(gone.pins).toEqual([pinOf(3, pins), pinOf(2, pins)]);
  });
});

/** What is received otherwise of peer 2, without its own word for it. */
const breaches: [string, Peer][] = [
  ['another key', { ...two, publicKey: key(22) }],
  ['another key with no identity', peer(2, { publicKey: key(22) })],
  ['another key with the word of another identity', { ...two, publicKey: key(22), proof: proof(22, 9, other) }],
  [
    'another key with another identity and its word',
    { ...two, publicKey: key(22), identity: other.key, proof: proof(22, 9, other) },
  ],
  ['another key with the word for yet another', { ...two, publicKey: key(22), proof: proof(23, 9) }],
  ['another key with a word as old as the last', { ...two, publicKey: key(22), proof: proof(22, 5) }],
  ['another address', { ...two, address: address('10.77.0.22') }],
  ['the key of a third peer, whatever its own word', { ...two, publicKey: key(3), proof: proof(3, 9) }],
  ['another id with its key elsewhere', { ...two, id: 22, address: address('10.77.0.22') }],
  ['another id with its key', { ...two, id: 22 }],
];

describe.each(breaches)('a peer with %s', (_, changed) => {
  const map = received(changed, ...(changed.publicKey === key(3) ? [] : [three]));
  const claim = { peer: changed.id, address: changed.address, publicKey: changed.publicKey };
  const used = { ...changed, publicKey: two.publicKey, address: two.address };

  it('is used and claimed with report', () => {
    const held = applyPins(map, pins, report);
    expect(held.map).toBe(map);
    expect(pinOf(2, held.pins)).toMatchObject({ ...pins[0], claimed: claim });
  });

  it('is held and claimed with strict', () => {
    const held = applyPins(map, pins, strict);
    expect(held.map.peers[1]).toEqual(used);
    expect(pinOf(2, held.pins)).toMatchObject({ ...pins[0], claimed: claim });
    expect(isMapAltered(held.pins, 'strict')).toBe(true);
    expect(applyPins(map, held.pins, strict).pins).toBe(held.pins);
  });

  it('is believed once that is accepted, and held again to what was accepted then', () => {
    const held = applyPins(map, pins, strict);
    const [pin] = held.pins.filter(({ claimed }) => claimed !== null);
    if (pin === undefined) throw new Error('nothing is claimed');
    const accepted = reapplyPins(held, strict, acceptMismatch(held.pins, pin));
    expect(rows(accepted.map)[1]).toEqual([changed.id, changed.publicKey, changed.address]);
    expect(accepted.pins.filter(({ claimed }) => claimed !== null)).toEqual([]);
    expect(applyPins(map, accepted.pins, strict).map).toBe(map);
    const back = applyPins(before, accepted.pins, strict);
    expect(back.pins.some(({ claimed }) => claimed !== null)).toBe(true);
  });

  it('claims nothing any more once it is received as before', () => {
    const held = applyPins(map, pins, strict);
    const back = applyPins({ ...before, revision: '"3"' }, held.pins, strict);
    expect(back.pins).toEqual(pins);
    expect(rows(back.map)).toEqual(rows(before));
  });

  it('is held, or used, as soon as the rule says so', () => {
    const loose = applyPins(map, pins, report);
    const tightened = reapplyPins(loose, strict);
    expect(rows(tightened.map)[1]).toEqual([changed.id, two.publicKey, two.address]);
    expect(rows(reapplyPins(tightened, report).map)).toEqual(rows(map));
    expect(reapplyPins(loose, report).map).toBe(map);
  });
});

describe('a claim that is accepted', () => {
  const [pin] = pins;
  const claimed = (changes: Partial<Pin>) => ({ ...(pin as Pin), serial: 3, ...changes });
  it('keeps the newest serial of the same identity, and takes that of another', () => {
    const same = { ...(pin as Pin), claimed: claimed({ publicKey: key(22) }) };
    expect(acceptMismatch([same], same)[0]).toMatchObject({ publicKey: key(22), serial: 5, claimed: null });
    const another = { ...(pin as Pin), claimed: claimed({ identity: other.key }) };
    expect(acceptMismatch([another], another)[0]).toMatchObject({ identity: other.key, serial: 3, claimed: null });
  });
  it('is no claim of another peer, and none that is not there', () => {
    const same = { ...(pin as Pin), claimed: claimed({ publicKey: key(22) }) };
    const twin = { ...same };
    expect(acceptMismatch([same, twin, ...pins.slice(1)], same).slice(1)).toEqual([twin, ...pins.slice(1)]);
    expect(acceptMismatch(pins, pins[0] as Pin)).toEqual(pins);
  });
  it('is held with strict alone, and only while something is claimed', () => {
    const same = { ...(pin as Pin), claimed: claimed({ publicKey: key(22) }) };
    const held = [isMapAltered([same], 'strict'), isMapAltered([same], 'report'), isMapAltered(pins, 'strict')];
    expect(held).toEqual([true, false, false]);
  });
});

it('a claim follows the newest serial of the peer, so that accepting it refuses the older proofs', () => {
  const claiming = (serial: number) => ({ ...two, publicKey: key(22), proof: proof(22, serial, other) });
  const first = applyPins(received(claiming(7), three), pins, report);
  const second = applyPins(received(claiming(9), three), first.pins, report);
  expect([first, second].map((held) => pinOf(2, held.pins)?.claimed?.serial)).toEqual([7, 9]);
});

describe('an identity that is received later', () => {
  it('is not accepted: its sender may have generated it', () => {
    const updated = received(two, { ...three, identity: other.key });
    expect(applyPins(updated, pins, strict).pins).toBe(pins);
    const map = received(two, { ...three, identity: other.key, publicKey: key(33), proof: proof(33, 9, other) });
    expect(rows(applyPins(map, pins, strict).map)[2]).toEqual([3, key(3), three.address]);
  });
});

describe('another identity for the same key', () => {
  const map = received({ ...two, identity: other.key }, three);
  it('is claimed', () => {
    const held = applyPins(map, pins, strict);
    expect(held.map).toBe(map);
    expect(pinOf(2, held.pins)?.claimed).toMatchObject({ publicKey: key(2), identity: other.key });
  });
  it('proves no key', () => {
    const held = applyPins(map, pins, strict);
    const next = received({ ...two, identity: other.key, publicKey: key(22), proof: proof(22, 9, other) }, three);
    expect(rows(applyPins(next, held.pins, strict).map)[1]).toEqual([2, key(2), two.address]);
  });
});

describe('an address that was given back', () => {
  const left = applyPins(received(three), pins, strict).pins;
  const newOwner = peer(9, { address: two.address });

  it('goes to a new peer with report', () => {
    const held = applyPins(received(three, newOwner), left, report);
    expect(held.pins.map((pin) => [pin.peer, pin.claimed])).toEqual([
      [3, null],
      [9, null],
      [2, null],
    ]);
  });

  it('belongs with strict to the first of two pins that have it', () => {
    const [first] = left.filter((pin) => pin.peer === 2);
    const later = first && { ...first, peer: 8, publicKey: key(8) };
    const twice = [...left, ...(later ? [later] : [])];
    expect(rows(applyPins(received(three, newOwner), twice, strict).map)[2]).toEqual([9, key(2), two.address]);
  });

  it('belongs to its earlier key with strict, not to the key that claims it now', () => {
    const held = applyPins(received(three, newOwner), left, strict);
    expect(rows(held.map)[2]).toEqual([9, key(2), two.address]);
    expect(pinOf(2, held.pins)?.claimed).toMatchObject({ peer: 9, publicKey: key(9) });
  });

  it('is that of one host if the service sends no ids', () => {
    const nameless = (number: number) => peer(2, { id: key(number), publicKey: key(number) });
    const known = applyPins(network([peer(1), nameless(2)]), [], report).pins;
    const held = applyPins(received(nameless(22)), known, report);
    expect(held.pins).toMatchObject([{ peer: key(2), claimed: { peer: key(22), publicKey: key(22) } }]);
    expect(rows(applyPins(received(nameless(22)), known, strict).map)[1]).toEqual([key(22), key(2), two.address]);
    expect(applyPins(received(two), known, report).pins).toMatchObject([{ peer: 2, publicKey: key(2), claimed: null }]);
  });
});

describe('a peer with the key or the address of one that is held', () => {
  const taker = peer(9, { publicKey: key(2) });
  const held = applyPins(received({ ...two, publicKey: key(22) }, three, taker), pins, strict);

  it('is left out, and not pinned', () => {
    expect(rows(held.map)).toEqual(rows(before));
    expect(pinOf(9, held.pins)).toBeUndefined();
    const settled = applyPins(
      received({ ...two, address: address('10.77.0.22') }, three, peer(9, { address: two.address })),
      pins,
      strict,
    );
    expect(rows(settled.map)).toEqual(rows(before));
  });

  it('is there after the next whole map once the other is accepted, for which is asked', () => {
    const [pin] = held.pins;
    if (pin === undefined) throw new Error('nothing is claimed');
    const accepted = reapplyPins(held, strict, acceptMismatch(held.pins, pin));
    expect(accepted.map.revision).toBeNull();
    const map = received({ ...two, publicKey: key(22) }, three, taker);
    expect(applyPins(map, accepted.pins, strict).map).toBe(map);
  });
});

it('pins the peers of a state that is older than its pins', () => {
  expect(completePins({ map: before, pins: [] }, strict)).toEqual(pins);
  expect(completePins({ map: before, pins }, strict)).toBe(pins);
});

it('drops those that left longest ago, once they are too many', () => {
  const many = (from: number) =>
    Array.from(
      { length: 16_384 },
      (_, at): Peer => ({
        ...three,
        id: from + at,
        publicKey: `${from + at}` as Peer['publicKey'],
        address: `${from + at}` as Peer['address'],
      }),
    );
  const first = applyPins(network(many(2)), [], report);
  const second = applyPins(network([...many(2).slice(0, 5), ...many(20_000).slice(0, 7)]), first.pins, report);
  expect(second.pins).toHaveLength(16_384);
  const third = applyPins(network(many(20_000).slice(0, 8)), second.pins, report);
  expect(third.pins.slice(8, 14).map((pin) => pin.peer)).toEqual([2, 3, 4, 5, 6, 7]);
  expect(third.pins).toHaveLength(16_384);
});

/** Words of the host that is known, all of them old, and of another peer. */
const words = [undefined, undefined, ...[5, 9].map((serial) => [serial, identity] as const), [12, other] as const].map(
  (word) => [2, 3, 4, 5, 6, 7].map((number) => word && proof(number, ...word)),
);

/** Networks in which anybody may have any key and address, with a word that counts for nothing. */
const anyMap = fc
  .uniqueArray(
    fc.record({
      id: fc.integer({ min: 2, max: 6 }),
      number: fc.integer({ min: 2, max: 7 }),
      at: fc.integer({ min: 2, max: 7 }),
      word: fc.nat(words.length - 1),
      silent: fc.boolean(),
    }),
    { maxLength: 5, comparator: (one, two) => one.id === two.id || one.number === two.number || one.at === two.at },
  )
  .map((peers) =>
    peers.map(({ id, number, at, word, silent }): Peer => {
      const said = words[word]?.[number - 2];
      const claims = { ...(said && { proof: said }), ...(silent && { identity: unknown.key }) };
      return {
        ...three,
        id,
        publicKey: ring[number] as Peer['publicKey'],
        address: address(`10.77.0.${at}`),
        ...claims,
      };
    }),
  );
const unknown = makeIdentity(new Uint8Array(32).fill(9));
const ring = [0, 1, 2, 3, 4, 5, 6, 7].map(key);

/** What a service that lists its peers by id tells of the way from one map to the other. */
function changesTo({ peers }: NetworkMap, newer: readonly Peer[]) {
  const ids = new Set(newer.map(({ id }) => id));
  return { ...received(...newer), removed: peers.map(({ id }) => id).filter((id) => id !== 1 && !ids.has(id)) };
}

it('with strict, whatever maps and changes come, an address and a key stay together, and a peer stays who it was', () => {
  const known = network([
    peer(1),
    ...[2, 3, 4].map((number) => peer(number, { identity: identity.key, proof: proof(number, 9) })),
  ]);
  fc.assert(
    fc.property(fc.array(fc.tuple(anyMap, fc.boolean()), { minLength: 1, maxLength: 8 }), (maps) => {
      let held = applyPins(known, [], strict);
      const together = new Map<unknown, unknown>();
      const stay = (name: unknown, value: unknown) => {
        expect(together.get(name) ?? value).toBe(value);
        together.set(name, value);
      };
      for (const [peers, asChanges] of maps) {
        // Deltas alone are received while no peer is held: then the map in use is the one received.
        const isBase = asChanges && !isMapAltered(held.pins, 'strict');
        const map = isBase ? applyDelta(held.map, changesTo(held.map, peers)) : received(...peers);
        held = applyPins(map, held.pins, strict);
        for (const { publicKey, address: at } of held.map.peers) {
          stay(publicKey, at);
          stay(at, publicKey);
        }
        for (const pin of held.pins) stay(pin.peer, pin.publicKey);
        expect(new Set(held.map.peers.map(({ publicKey }) => publicKey)).size).toBe(held.map.peers.length);
      }
    }),
    { numRuns: 100 },
  );
});
