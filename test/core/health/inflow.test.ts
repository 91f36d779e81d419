import { expect, it } from 'vitest';
import { measureInflow } from '../../../src/core/health/inflow.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { keyPair } from '../samples.ts';

const one = keyPair(1).publicKey;
const other = keyPair(2).publicKey;

function at(rxBytes: number, publicKey = one): ActualPeer {
  const nothing = { presharedKey: null, endpoint: null, allowedIps: [], keepalive: null, latestHandshake: null };
  return { publicKey, rxBytes, txBytes: 0, ...nothing };
}

it('lists the senders, the largest first, in bytes per second', () => {
  const inflow = measureInflow([at(500), at(0, other)], [at(8_500), at(20_000, other)], 2);
  expect(inflow).toEqual([
    { publicKey: other, rate: 10_000 },
    { publicKey: one, rate: 4_000 },
  ]);
});

it('ignores a handshake, a keepalive and two liveness probes', () => {
  expect(measureInflow([at(0)], [at(148 + 32 + 2 * 4 * 96)], 1)).toEqual([]);
});

it('counts twenty pings per second as use', () => {
  expect(measureInflow([at(0)], [at(20 * 128)], 1)).toMatchObject([{ publicKey: one }]);
});

it('evaluates each peer on its own: a hundred idle peers stay idle', () => {
  const many = (rxBytes: number) => Array.from({ length: 100 }, (_, n) => at(rxBytes, keyPair(n + 1).publicKey));
  expect(measureInflow(many(0), many(900), 1)).toEqual([]);
});

it('takes what a peer sent since it was added, or added again', () => {
  expect(measureInflow([], [at(5_000)], 1)).toEqual([{ publicKey: one, rate: 5_000 }]);
  expect(measureInflow([at(90_000)], [at(5_000)], 1)).toEqual([{ publicKey: one, rate: 5_000 }]);
  expect(measureInflow([at(90_000)], [], 1)).toEqual([]);
});
