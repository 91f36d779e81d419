import { describe, expect, it } from 'vitest';
import type { PublicKey } from '../../../src/core/crypto/keys.ts';
import {
  type EndpointHistory,
  findAlternating,
  trackEndpoints,
} from '../../../src/core/health/alternating-endpoints.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';

const publicKey = 'key' as PublicKey;
const epoch = 1_700_000_000;

interface Sample {
  readonly host: string | null;
  readonly port?: number;
  /** Seconds since the latest handshake. */
  readonly age?: number | null;
}

/** What is found after these observations, half a minute apart. */
function observe(samples: readonly (string | Sample)[], seconds = 30) {
  let history: EndpointHistory = new Map();
  for (const [index, sample] of samples.entries()) {
    const { host, port = 51820, age = 10 } = typeof sample === 'string' ? { host: sample } : sample;
    const now = epoch + index * seconds;
    const peer = {
      publicKey,
      endpoint: host === null ? null : { host: parseAddress(host), port },
      latestHandshake: age === null ? null : now - age,
    } as ActualPeer;
    history = trackEndpoints(history, [peer], now, index * seconds);
  }
  return findAlternating(history, (samples.length - 1) * seconds).get(publicKey) ?? null;
}

const [one, two, three] = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];

describe('endpoints that alternate', () => {
  it.each([
    ['two hosts', [one, two, one, two, one], 30],
    ['two hosts, seen at random', [one, one, two, two, one, two, two, two, one, one], 30],
  ] as const)('%s are found', (_, samples, seconds) => {
    expect(observe(samples, seconds)).toEqual(['192.0.2.1:51820', '192.0.2.2:51820']);
  });

  it('two hosts behind one NAT are found by their ports', () => {
    const [near, far] = [
      { host: one, port: 1 },
      { host: one, port: 2 },
    ];
    expect(observe([near, far, near, far, near])).toEqual(['192.0.2.1:1', '192.0.2.1:2']);
  });

  it.each([
    ['a host that stays', [one, one, one, one, one, one], 30],
    ['a host that roams', [one, two, two, two, two, two], 30],
    ['a host that roams and comes back', [one, two, one, one, one, one], 30],
    ['a host that roams on and on', [one, two, three, one, two, three, one], 30],
    ['a NAT that gives another port each time', [1, 2, 3, 4, 5, 6, 7].map((port) => ({ host: one, port })), 30],
    ['a host that changes between two networks each quarter of an hour', [one, two, one, two, one, two], 900],
    [
      'an endpoint of the map where no host answers',
      [one, two, one, two, one, two, one].map((host) => (host === one ? { host } : { host, age: 400 })),
      30,
    ],
    ['a peer without an endpoint', [null, null, null, null, null].map((host) => ({ host, age: null })), 30],
  ] as const)('%s is not', (_, samples, seconds) => {
    expect(observe(samples as readonly (string | Sample)[], seconds)).toBeNull();
  });

  it('are found by four changes, and not by three and the endpoint before them', () => {
    expect(observe([one, two, one, two])).toBeNull();
    expect(observe([one, two, one, two, one])).toEqual(['192.0.2.1:51820', '192.0.2.2:51820']);
  });

  it('are found by the last four changes of more', () => {
    for (const samples of [
      [one, two, one, two, one, two],
      [one, two, one, two, one, two, one],
      [three, one, two, one, two, one],
    ])
      expect(observe(samples)).toEqual(['192.0.2.1:51820', '192.0.2.2:51820']);
    expect(observe([one, two, one, three, one])).toBeNull();
  });

  it('are no longer found ten minutes after the first of four changes, also without another observation', () => {
    const seen = [one, two, one, two, one].map((endpoint, index) => ({ endpoint, at: index * 30 }));
    const history = new Map([[publicKey, seen]]);
    expect(findAlternating(history, 629).size).toBe(1);
    expect(findAlternating(history, 630).size).toBe(0);
  });

  it('end with the last change, and a peer that is gone is forgotten', () => {
    expect(observe([one, two, one, two, one, ...Array.from({ length: 21 }, () => one)])).toBeNull();
    expect(trackEndpoints(new Map([[publicKey, [{ endpoint: 'x', at: 0 }]]]), [], epoch, 1).size).toBe(0);
  });
});
