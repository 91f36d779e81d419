import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyDelta } from '../../src/core/apply-delta.ts';
import { makeIdentity, proveKey } from '../../src/core/identity.ts';
import type { NetworkMap, Peer, Pin, PinRule } from '../../src/core/model.ts';
import { acceptClaim, completePins, type Holder, holdPins, isHolding, recastPins } from '../../src/core/pins.ts';
import { address, dialled, keyPair, network, peer } from './samples.ts';

const identity = makeIdentity(new Uint8Array(32).fill(7));
const other = makeIdentity(new Uint8Array(32).fill(8));
const self = { id: 1, keys: [keyPair(1).publicKey] };
const report: Holder = { rule: 'report', self };
const strict: Holder = { rule: 'strict', self };
const key = (number: number) => keyPair(number).publicKey;
const proof = (number: number, serial: number, by = identity) => proveKey(by, key(number), new Date(serial));

/** A network in which peer 2 proves its keys, and its last word has the serial 5. */
const two = peer(2, { identity: identity.key, proof: proof(2, 5), endpoint: dialled(2) });
const three = peer(3);
const before = network([peer(1), two, three]);
const { pins } = holdPins(before, [], strict);
const told = (...peers: Peer[]) => network([peer(1), ...peers], { revision: '"2"' });
const pinOf = (number: number, from: readonly Pin[]) => from.find((pin) => pin.peer === number);
const rows = ({ peers }: NetworkMap) => peers.map(({ id, publicKey, address: at }) => [id, publicKey, at]);

describe('a peer that was never seen', () => {
  it('is known by what is told first, with its identity and its last word', () => {
    expect(pins).toEqual([
      { peer: 2, address: two.address, publicKey: key(2), identity: identity.key, serial: 5, claimed: null },
      { peer: 3, address: three.address, publicKey: key(3), identity: null, serial: 0, claimed: null },
    ]);
  });

  it('joins those that are known, which stay in the order of their ids', () => {
    const held = holdPins(told(peer(4), three, two), pins, strict);
    expect(held.pins.map((pin) => pin.peer)).toEqual([2, 3, 4]);
    expect(held.pins[0]).toBe(pins[0]);
  });

  it('is not this host, under whichever key it is listed', () => {
    for (const own of [peer(1), peer(1, { publicKey: key(9) }), peer(9, { publicKey: key(1) })]) {
      expect(holdPins(network([own, two, three]), pins, strict).pins).toBe(pins);
    }
  });
});

describe.each<[PinRule, Holder]>([
  ['report', report],
  ['strict', strict],
])('with %s nobody objects to', (_, holder) => {
  it.each<[string, Peer]>([
    ['the same again', two],
    [
      'another name, endpoint, type and routes',
      { ...two, name: 'x', endpoint: dialled(9), type: 'connector', routes: [] },
    ],
    ['an identity that is told no more', peer(2)],
    ['an older word for the same key', { ...two, proof: proof(2, 4) }],
    ['a word of somebody else for the same key', { ...two, proof: proof(2, 9, other) }],
  ])('%s', (_name, changed) => {
    const map = told(changed, three);
    const held = holdPins(map, pins, holder);
    expect(held.map).toBe(map);
    expect(held.pins).toBe(pins);
  });

  it('another key by the newer word of its host', () => {
    const map = told({ ...two, publicKey: key(22), proof: proof(22, 6) }, three);
    const held = holdPins(map, pins, holder);
    expect(held.map).toBe(map);
    expect(pinOf(2, held.pins)).toMatchObject({ publicKey: key(22), serial: 6, claimed: null });
  });

  it('a newer word for the same key, after which the older ones are of no use', () => {
    const held = holdPins(told({ ...two, proof: proof(2, 9) }, three), pins, holder);
    expect(pinOf(2, held.pins)).toMatchObject({ serial: 9, claimed: null });
    const replayed = holdPins(told({ ...two, publicKey: key(22), proof: proof(22, 8) }, three), held.pins, holder);
    expect(pinOf(2, replayed.pins)?.claimed).not.toBeNull();
  });

  it('a peer that leaves; it is known still, and claims nothing while it is gone', () => {
    const claiming = holdPins(told({ ...two, publicKey: key(22) }, three), pins, holder);
    const gone = holdPins(told(three), claiming.pins, holder);
    expect(rows(gone.map)).toEqual(rows(told(three)));
    expect(gone.pins).toEqual([pinOf(3, pins), pinOf(2, pins)]);
  });
});

/** What is told otherwise of peer 2, without its own word for it. */
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
  const map = told(changed, ...(changed.publicKey === key(3) ? [] : [three]));
  const claim = { peer: changed.id, address: changed.address, publicKey: changed.publicKey };
  const used = { ...changed, publicKey: two.publicKey, address: two.address };

  it('is used and claimed with report', () => {
    const held = holdPins(map, pins, report);
    expect(held.map).toBe(map);
    expect(pinOf(2, held.pins)).toMatchObject({ ...pins[0], claimed: claim });
  });

  it('is held and claimed with strict', () => {
    const held = holdPins(map, pins, strict);
    expect(held.map.peers[1]).toEqual(used);
    expect(pinOf(2, held.pins)).toMatchObject({ ...pins[0], claimed: claim });
    expect(isHolding(held.pins, 'strict')).toBe(true);
    expect(holdPins(map, held.pins, strict).pins).toBe(held.pins);
  });

  it('is believed once that is accepted, and held again to what was accepted then', () => {
    const held = holdPins(map, pins, strict);
    const [pin] = held.pins.filter(({ claimed }) => claimed !== null);
    if (pin === undefined) throw new Error('nothing is claimed');
    const accepted = recastPins(held, strict, acceptClaim(held.pins, pin));
    expect(rows(accepted.map)[1]).toEqual([changed.id, changed.publicKey, changed.address]);
    expect(accepted.pins.filter(({ claimed }) => claimed !== null)).toEqual([]);
    expect(holdPins(map, accepted.pins, strict).map).toBe(map);
    const back = holdPins(before, accepted.pins, strict);
    expect(back.pins.some(({ claimed }) => claimed !== null)).toBe(true);
  });

  it('claims nothing any more once it is told as before', () => {
    const held = holdPins(map, pins, strict);
    const back = holdPins({ ...before, revision: '"3"' }, held.pins, strict);
    expect(back.pins).toEqual(pins);
    expect(rows(back.map)).toEqual(rows(before));
  });

  it('is held, or used, as soon as the rule says so', () => {
    const loose = holdPins(map, pins, report);
    const tightened = recastPins(loose, strict);
    expect(rows(tightened.map)[1]).toEqual([changed.id, two.publicKey, two.address]);
    expect(rows(recastPins(tightened, report).map)).toEqual(rows(map));
    expect(recastPins(loose, report).map).toBe(map);
  });
});

describe('a claim that is accepted', () => {
  const [pin] = pins;
  const claimed = (changes: Partial<Pin>) => ({ ...(pin as Pin), serial: 3, ...changes });
  it('keeps the newest serial of the same identity, and takes that of another', () => {
    const same = { ...(pin as Pin), claimed: claimed({ publicKey: key(22) }) };
    expect(acceptClaim([same], same)[0]).toMatchObject({ publicKey: key(22), serial: 5, claimed: null });
    const another = { ...(pin as Pin), claimed: claimed({ identity: other.key }) };
    expect(acceptClaim([another], another)[0]).toMatchObject({ identity: other.key, serial: 3, claimed: null });
  });
  it('is no claim of another peer, and none that is not there', () => {
    const same = { ...(pin as Pin), claimed: claimed({ publicKey: key(22) }) };
    const twin = { ...same };
    expect(acceptClaim([same, twin, ...pins.slice(1)], same).slice(1)).toEqual([twin, ...pins.slice(1)]);
    expect(acceptClaim(pins, pins[0] as Pin)).toEqual(pins);
  });
  it('is held with strict alone, and only while something is claimed', () => {
    const same = { ...(pin as Pin), claimed: claimed({ publicKey: key(22) }) };
    const held = [isHolding([same], 'strict'), isHolding([same], 'report'), isHolding(pins, 'strict')];
    expect(held).toEqual([true, false, false]);
  });
});

describe('an identity that is told later', () => {
  it('is not believed: whoever tells it may have made it', () => {
    const told2 = told(two, { ...three, identity: other.key });
    expect(holdPins(told2, pins, strict).pins).toBe(pins);
    const map = told(two, { ...three, identity: other.key, publicKey: key(33), proof: proof(33, 9, other) });
    expect(rows(holdPins(map, pins, strict).map)[2]).toEqual([3, key(3), three.address]);
  });
});

describe('another identity for the same key', () => {
  const map = told({ ...two, identity: other.key }, three);
  it('is claimed', () => {
    const held = holdPins(map, pins, strict);
    expect(held.map).toBe(map);
    expect(pinOf(2, held.pins)?.claimed).toMatchObject({ publicKey: key(2), identity: other.key });
  });
  it('speaks for nobody', () => {
    const held = holdPins(map, pins, strict);
    const next = told({ ...two, identity: other.key, publicKey: key(22), proof: proof(22, 9, other) }, three);
    expect(rows(holdPins(next, held.pins, strict).map)[1]).toEqual([2, key(2), two.address]);
  });
});

describe('an address that was given back', () => {
  const left = holdPins(told(three), pins, strict).pins;
  const heir = peer(9, { address: two.address });

  it('goes to a new peer with report', () => {
    const held = holdPins(told(three, heir), left, report);
    expect(held.pins.map((pin) => [pin.peer, pin.claimed])).toEqual([
      [3, null],
      [9, null],
      [2, null],
    ]);
  });

  it('belongs to the key it had with strict, whoever has it now', () => {
    const held = holdPins(told(three, heir), left, strict);
    expect(rows(held.map)[2]).toEqual([9, key(2), two.address]);
    expect(pinOf(2, held.pins)?.claimed).toMatchObject({ peer: 9, publicKey: key(9) });
  });

  it('is that of one host where the service tells no ids', () => {
    const nameless = (number: number) => peer(2, { id: key(number), publicKey: key(number) });
    const known = holdPins(network([peer(1), nameless(2)]), [], report).pins;
    const held = holdPins(told(nameless(22)), known, report);
    expect(held.pins).toMatchObject([{ peer: key(2), claimed: { peer: key(22), publicKey: key(22) } }]);
    expect(rows(holdPins(told(nameless(22)), known, strict).map)[1]).toEqual([key(22), key(2), two.address]);
    expect(holdPins(told(two), known, report).pins).toMatchObject([{ peer: 2, publicKey: key(2), claimed: null }]);
  });
});

describe('a peer with the key or the address of one that is held', () => {
  const taker = peer(9, { publicKey: key(2) });
  const held = holdPins(told({ ...two, publicKey: key(22) }, three, taker), pins, strict);

  it('is left out, and not known', () => {
    expect(rows(held.map)).toEqual(rows(before));
    expect(pinOf(9, held.pins)).toBeUndefined();
    const settled = holdPins(
      told({ ...two, address: address('10.77.0.22') }, three, peer(9, { address: two.address })),
      pins,
      strict,
    );
    expect(rows(settled.map)).toEqual(rows(before));
  });

  it('is there after the next whole map once the other is accepted, for which is asked', () => {
    const [pin] = held.pins;
    if (pin === undefined) throw new Error('nothing is claimed');
    const accepted = recastPins(held, strict, acceptClaim(held.pins, pin));
    expect(accepted.map.revision).toBeNull();
    const map = told({ ...two, publicKey: key(22) }, three, taker);
    expect(holdPins(map, accepted.pins, strict).map).toBe(map);
  });
});

it('knows of the peers that a state older than its pins goes by', () => {
  expect(completePins({ map: before, pins: [] }, strict)).toEqual(pins);
  expect(completePins({ map: before, pins }, strict)).toBe(pins);
});

it('forgets those that left longest ago, once they are too many', () => {
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
  const first = holdPins(network(many(2)), [], report);
  const second = holdPins(network([...many(2).slice(0, 5), ...many(20_000).slice(0, 7)]), first.pins, report);
  expect(second.pins).toHaveLength(16_384);
  const third = holdPins(network(many(20_000).slice(0, 8)), second.pins, report);
  expect(third.pins.slice(8, 14).map((pin) => pin.peer)).toEqual([2, 3, 4, 5, 6, 7]);
  expect(third.pins).toHaveLength(16_384);
});

/** Words of the host that is known, all of them old, and of somebody else. */
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
      const claims = { ...(said && { proof: said }), ...(silent && { identity: nobody.key }) };
      return {
        ...three,
        id,
        publicKey: ring[number] as Peer['publicKey'],
        address: address(`10.77.0.${at}`),
        ...claims,
      };
    }),
  );
const nobody = makeIdentity(new Uint8Array(32).fill(9));
const ring = [0, 1, 2, 3, 4, 5, 6, 7].map(key);

/** What a service that lists its peers by id tells of the way from one map to the other. */
function changesTo({ peers }: NetworkMap, newer: readonly Peer[]) {
  const ids = new Set(newer.map(({ id }) => id));
  return { ...told(...newer), removed: peers.map(({ id }) => id).filter((id) => id !== 1 && !ids.has(id)) };
}

it('with strict, whatever maps and changes come, an address and a key stay together, and a peer stays who it was', () => {
  const known = network([
    peer(1),
    ...[2, 3, 4].map((number) => peer(number, { identity: identity.key, proof: proof(number, 9) })),
  ]);
  fc.assert(
    fc.property(fc.array(fc.tuple(anyMap, fc.boolean()), { minLength: 1, maxLength: 8 }), (maps) => {
      let held = holdPins(known, [], strict);
      const together = new Map<unknown, unknown>();
      const stay = (name: unknown, value: unknown) => {
        expect(together.get(name) ?? value).toBe(value);
        together.set(name, value);
      };
      for (const [peers, asChanges] of maps) {
        // Changes alone are told where nobody is held: then the map in use is the one told.
        const isBase = asChanges && !isHolding(held.pins, 'strict');
        const map = isBase ? applyDelta(held.map, changesTo(held.map, peers)) : told(...peers);
        held = holdPins(map, held.pins, strict);
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
