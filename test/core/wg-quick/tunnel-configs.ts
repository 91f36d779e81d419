import fc from 'fast-check';
import type { TunnelConfig } from '../../../src/core/wg-quick/parse.ts';
import { address, keyPair, prefixes } from '../samples.ts';

const peers = fc.uniqueArray(
  fc.record({
    publicKey: fc.integer({ min: 1, max: 4000 }).map((number) => keyPair(number).publicKey),
    presharedKey: fc.option(fc.constant(keyPair(9).privateKey)),
    endpoint: fc.option(
      fc.record({
        host: fc.oneof(fc.ipV4(), fc.constant('2001:db8::1')).map(address),
        port: fc.integer({ min: 1, max: 65535 }),
      }),
    ),
    allowedIps: fc.uniqueArray(prefixes, { maxLength: 4 }),
    keepalive: fc.option(fc.integer({ min: 1, max: 65535 })),
  }),
  { selector: (peer) => peer.publicKey, maxLength: 5 },
);

/** Tunnels of all kinds, of up to five peers. */
export const configs: fc.Arbitrary<TunnelConfig> = fc.record({
  privateKey: fc.constant(keyPair(1).privateKey),
  listenPort: fc.option(fc.integer({ min: 1, max: 65535 })),
  fwmark: fc.option(fc.integer({ min: 1, max: 0xffffffff })),
  mtu: fc.integer({ min: 576, max: 65535 }),
  address: fc.record({ address: fc.ipV4().map(address), length: fc.integer({ min: 0, max: 32 }) }),
  peers,
});
