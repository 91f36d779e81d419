import { describe, expect, it } from 'vitest';
import { type AddressTrial, beginTrial, judgeTrial } from '../../../src/core/health/address-trial.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { address, keyPair } from '../samples.ts';

const at = address('2001:db8::7');
const wall = 1_000_000;

/** A peer as WireGuard counts it; a handshake is given by its age in seconds. */
function peer(rxBytes: number, txBytes: number, age: number | null = null): ActualPeer {
  const { publicKey } = keyPair(2);
  const latestHandshake = age === null ? null : wall - age;
  const endpoint = { host: at, port: 51820 };
  return {
    publicKey,
    presharedKey: null,
    endpoint,
    allowedIps: [],
    keepalive: null,
    latestHandshake,
    rxBytes,
    txBytes,
  };
}

/** Looks at these seconds, with what was sent by then, and returns whether the peer is silent and when to look again. */
function follow(begun: AddressTrial, looks: readonly (readonly [number, ActualPeer])[], choices = 2) {
  let trial = begun;
  return looks.map(([now, observed]) => {
    const verdict = judgeTrial(trial, [observed], { now, wall: wall + now, choices });
    trial = verdict.trial;
    return [verdict.isSilent, verdict.lookIn];
  });
}

describe('an address is silent', () => {
  it('it is when packets go out for 15 s, and nothing comes back', () => {
    const begun = beginTrial(at, [peer(0, 148)]);
    expect(
      follow(begun, [
        [0, peer(0, 148)],
        [10, peer(0, 444)],
        [15, peer(0, 592)],
      ]),
    ).toEqual([
      [false, 15],
      [false, 5],
      [true, null],
    ]);
  });

  it('after 90 s once each address was tried', () => {
    const begun = beginTrial(at, [peer(0, 148)], { failures: 2 });
    expect(
      follow(begun, [
        [0, peer(0, 148)],
        [15, peer(0, 592)],
        [90, peer(0, 900)],
      ]),
    ).toEqual([
      [false, 90],
      [false, 75],
      [true, null],
    ]);
  });

  it('it is in spite of a recent handshake, where that was before this host moved', () => {
    const begun = beginTrial(at, [peer(500, 500, 10)], { needsAnswer: true });
    expect(
      follow(begun, [
        [0, peer(500, 500, 10)],
        [5, peer(500, 648, 10)],
        [20, peer(500, 1000, 10)],
      ]),
    ).toEqual([
      [false, 5],
      [false, 15],
      [true, null],
    ]);
  });
});

describe('an address is not silent', () => {
  it.each<[string, readonly (readonly [number, ActualPeer])[]]>([
    [
      'while its handshake is recent',
      [
        [0, peer(500, 900, 60)],
        [15, peer(500, 1500, 60)],
        [60, peer(500, 2500, 60)],
      ],
    ],
    [
      'while nothing is sent',
      [
        [0, peer(500, 500, 300)],
        [100, peer(500, 500, 300)],
        [500, peer(500, 500, 300)],
      ],
    ],
    [
      'after one packet that needs no answer',
      [
        [0, peer(500, 532, 300)],
        [15, peer(500, 532, 300)],
        [90, peer(500, 532, 300)],
      ],
    ],
    [
      'when something comes back',
      [
        [0, peer(500, 648, 300)],
        [14, peer(592, 900, 300)],
        [15, peer(592, 900, 300)],
      ],
    ],
    [
      'when a handshake is new',
      [
        [0, peer(500, 648, 300)],
        [14, peer(500, 900, 0)],
        [30, peer(500, 1200, 0)],
      ],
    ],
  ])('%s', (_, looks) => {
    const begun = beginTrial(at, [peer(500, 500, 300)]);
    for (const [isSilent] of follow(begun, looks)) expect(isSilent).toBe(false);
  });

  it('an answer ends what earlier addresses count for', () => {
    const begun = beginTrial(at, [peer(0, 148)], { needsAnswer: true, failures: 5 });
    const { trial } = judgeTrial(begun, [peer(92, 148, 0)], { now: 1, wall, choices: 2 });
    expect(trial).toMatchObject({ failures: 0, needsAnswer: false, unanswered: null });
  });
});

it('the address that was the last to answer is given the long patience, and any other the short one', () => {
  const patienceOf = (failures: number, answeredLast: typeof at | null) => {
    const begun = beginTrial(at, [peer(0, 148)], { failures });
    return judgeTrial(begun, [peer(0, 296)], { now: 0, wall, choices: 2, answeredLast }).lookIn;
  };
  const other = address('2001:db8::8');
  expect([0, 1].map((failures) => patienceOf(failures, at))).toEqual([15, 15]);
  expect([at, null, other].map((last) => patienceOf(2, last))).toEqual([90, 90, 15]);
});

it('packets that needed no answer count no more, and new ones begin another wait', () => {
  const begun = beginTrial(at, [peer(500, 500, 300)]);
  const looks = [
    [0, peer(500, 532, 300)],
    [15, peer(500, 532, 300)],
    [20, peer(500, 532, 300)],
    [40, peer(500, 680, 300)],
    [55, peer(500, 828, 300)],
  ] as const;
  expect(follow(begun, looks)).toEqual([
    [false, 15],
    [false, null],
    [false, null],
    [false, 15],
    [true, null],
  ]);
});

it('a host that moved and sends nothing is looked at three times', () => {
  const begun = beginTrial(at, [peer(500, 500, 10)], { needsAnswer: true });
  const idle = [0, 5, 10, 15].map((now) => [now, peer(500, 500, 10)] as const);
  expect(follow(begun, idle).map(([, lookIn]) => lookIn)).toEqual([5, 5, 5, null]);
});
