import { expect, test } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import type { RenewPeers } from '../../../src/core/reconcile/step.ts';
import { renewalCalls } from '../../../src/host/wireguard/wg.ts';
import { at, makePeer, newPresharedKey } from '../samples.ts';

const step = { do: 'renew-peers', link: 'cpn0' } as const satisfies Partial<RenewPeers>;
const [range, route] = [parsePrefix('10.77.0.9/32'), parsePrefix('192.168.50.0/24')];

test('peers are removed and added again with one call', () => {
  const [one, two] = [
    makePeer({ endpoint: at('203.0.113.7', 51820), keepalive: 25, allowedIps: [range, route] }),
    makePeer(),
  ];
  expect(renewalCalls({ ...step, peers: [one, two] })).toEqual([
    {
      args: [
        ...['set', 'cpn0', 'peer', one.publicKey, 'remove', 'peer', one.publicKey, 'endpoint', '203.0.113.7:51820'],
        ...['persistent-keepalive', '25', 'allowed-ips', '10.77.0.9/32,192.168.50.0/24'],
        ...['peer', two.publicKey, 'remove', 'peer', two.publicKey],
        ...['persistent-keepalive', '0', 'allowed-ips', '10.77.0.9/32'],
      ],
    },
  ]);
});

test('a preshared key is in no argument', () => {
  const presharedKey = newPresharedKey();
  const calls = renewalCalls({ ...step, peers: [makePeer({ presharedKey }), makePeer()] });
  expect(calls.map(({ input }) => input?.reveal())).toEqual([undefined, presharedKey.reveal()]);
  expect(JSON.stringify(calls)).not.toContain(presharedKey.reveal());
  expect(calls[1]?.args).toContain('/dev/stdin');
  const bad = makePeer({ presharedKey: new Secret('canary') });
  expect(() => renewalCalls({ ...step, peers: [bad] })).toThrow(InvalidValue);
});
