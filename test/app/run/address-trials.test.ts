import { describe, expect, it } from 'vitest';
import type { Evaluation } from '../../../src/app/reconcile/evaluate-network.ts';
import { AddressTrials } from '../../../src/app/run/address-trials.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { type Address, parseAddress } from '../../../src/core/net/cidr.ts';
import { peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';

const [a, b] = ['2001:db8::7', '198.51.100.7'].map((text) => parseAddress(text)) as [Address, Address];
const wall = 1_700_000_000;

interface NamedPeer {
  readonly name: string;
  /** Where WireGuard sends to it. */
  readonly at?: Address;
  /** Seconds since its last handshake; null for none. */
  readonly age?: number | null;
  readonly rxBytes?: number;
  readonly txBytes?: number;
  /** False for a peer that this host does not dial. */
  readonly isDialled?: boolean;
}

/** What a pass sees of these peers, whose names have both addresses in this order. */
function see(
  peers: readonly NamedPeer[],
  order: readonly Address[] = [a, b],
  avoided: readonly Address[] = [],
): Evaluation {
  const listed = peers.map(({ name }, at) => peer(at + 2, { endpoint: { host: name, port: 51_820 } }));
  const keyOf = (at: number) => listed[at]?.publicKey ?? '';
  const entries = peers.map(({ at = a, age = null, rxBytes = 0, txBytes = 0 }, index) => ({
    ...{ publicKey: keyOf(index), endpoint: { host: at, port: 51_820 }, rxBytes, txBytes },
    latestHandshake: age === null ? null : wall - age,
  }));
  const wanted = peers.map(({ isDialled = true }, index) => ({
    publicKey: keyOf(index),
    endpoint: isDialled ? { host: a, port: 51_820 } : null,
  }));
  return {
    state: joinedTo(mapAt('"1"', listed)),
    actual: { device: { peers: entries as unknown as ActualPeer[] } },
    desired: {
      config: { peers: wanted },
      resolved: Object.fromEntries(peers.map(({ name }) => [name, order])),
      avoided: new Set(avoided),
    },
  } as unknown as Evaluation;
}

function begin() {
  let seconds = 1_000;
  const trials = new AddressTrials({ monotonic: () => seconds, now: () => new Date(wall * 1000) });
  return {
    trials,
    advance: (by: number) => {
      seconds += by;
    },
    look: (evaluation: Evaluation, answers: Readonly<Record<string, readonly Address[]>> = {}) =>
      trials.look(evaluation, new Map(Object.entries(answers))),
  };
}

describe('the next look', () => {
  it('is the earliest of all names', () => {
    const { look, advance } = begin();
    const sent = (first: number, second: number) =>
      see([
        { name: 'one', txBytes: first },
        { name: 'two', txBytes: second },
      ]);
    look(sent(0, 0));
    look(sent(148, 0));
    advance(5);
    expect(look(sent(296, 148)).lookIn).toBe(10);
  });

  it('is not made for a name with a single usable address, or one that is left in the answer of the resolver', () => {
    const silent = [{ name: 'one', txBytes: 148 }];
    const unusable = begin();
    expect(unusable.look(see(silent, [a, b], [b])).lookIn).toBeNull();
    expect(begin().look(see(silent), { one: [a] }).lookIn).toBeNull();
    expect(begin().look(see(silent)).lookIn).toBe(15);
  });
});

describe('the address at which a peer answers', () => {
  it('is the one in use, where peers answer at several', () => {
    const both = [
      { name: 'one', at: b, age: 10 },
      { name: 'one', at: a, age: 20 },
    ];
    expect(begin().look(see(both)).uses).toMatchObject([{ heardAt: a, silentAt: null, candidates: [a, b] }]);
    expect(begin().look(see(both, [b, a])).uses).toMatchObject([{ heardAt: b }]);
    expect(begin().look(see(both.slice(0, 1))).uses).toMatchObject([{ heardAt: b }]);
  });

  it('is none of an old handshake, of another address, or of a peer that this host does not dial', () => {
    const elsewhere = parseAddress('198.51.100.99');
    const heardOf = (one: NamedPeer) =>
      begin()
        .look(see([one]))
        .uses.map(({ heardAt }) => heardAt);
    expect(heardOf({ name: 'one', age: 600 })).toEqual([null]);
    expect(heardOf({ name: 'one', age: 10, at: elsewhere })).toEqual([null]);
    expect(heardOf({ name: 'one', age: 10, isDialled: false })).toEqual([]);
    expect(heardOf({ name: 'one', age: 10 })).toEqual([a]);
  });
});

describe('silent addresses', () => {
  it('are those that another one replaced, until a peer answers', () => {
    const { trials, look } = begin();
    look(see([{ name: 'one', txBytes: 148 }, { name: 'two' }]));
    trials.fail('one', a, b);
    expect(trials.silent).toEqual([a]);
    trials.fail('one', b, a);
    expect(trials.silent).toEqual([b]);
    trials.fail('two', a, null);
    trials.fail('unknown', a, b);
    expect(trials.silent).toEqual([b]);
    look(see([{ name: 'one', txBytes: 296, rxBytes: 92 }, { name: 'two' }]));
    expect(trials.silent).toEqual([]);
  });

  it('are forgotten with their name, and by a reset', () => {
    for (const forget of ['name', 'reset'] as const) {
      const { trials, look } = begin();
      look(see([{ name: 'one', txBytes: 148 }]));
      trials.fail('one', a, b);
      if (forget === 'reset') trials.reset();
      else look(see([{ name: 'two' }]));
      expect(trials.silent).toEqual([]);
    }
  });
});

describe('after a reset', () => {
  it('only a new answer counts, once', () => {
    const { trials, look } = begin();
    const answered = see([{ name: 'one', age: 10, rxBytes: 92, txBytes: 148 }]);
    expect(look(answered).uses).toMatchObject([{ heardAt: a }]);
    trials.reset();
    expect(look(answered)).toMatchObject({ uses: [{ heardAt: null, silentAt: null }], lookIn: 5 });
    const again = see([{ name: 'one', age: 0, rxBytes: 184, txBytes: 296 }]);
    expect(look(again).uses).toMatchObject([{ heardAt: a }]);
  });

  it('the address that answered before is no longer a reason to try the others for a short time only', () => {
    const patienceAt = (isReset: boolean) => {
      const { trials, look } = begin();
      look(see([{ name: 'one', at: b, age: 10, rxBytes: 92, txBytes: 148 }], [b, a]));
      if (isReset) trials.reset();
      let txBytes = 148;
      for (const order of [
        [b, a],
        [a, b],
        [b, a],
      ] as const) {
        look(see([{ name: 'one', at: order[0], age: 600, rxBytes: 92, txBytes }], order));
        trials.fail('one', order[0], order[1]);
        txBytes += 148;
      }
      look(see([{ name: 'one', age: 600, rxBytes: 92, txBytes }]));
      return look(see([{ name: 'one', age: 600, rxBytes: 92, txBytes: txBytes + 148 }])).lookIn;
    };
    expect([patienceAt(false), patienceAt(true)]).toEqual([15, 90]);
  });
});
