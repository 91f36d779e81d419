import fc from 'fast-check';
import type { PublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { type Address, maskPrefix, type Prefix, parseAddress } from '../../src/core/net/cidr.ts';
import type { SocketEndpoint } from '../../src/core/net/endpoint.ts';
import type { DesiredPeer, TunnelConfig } from '../../src/core/wg-quick/parse.ts';

/** 32 bytes in base64. */
export const keys: fc.Arbitrary<string> = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('base64'));

/** Without IPv6 addresses that embed an IPv4 address. */
export const addresses: fc.Arbitrary<Address> = fc.oneof(
  fc.ipV4().map((text) => parseAddress(text)),
  fc
    .ipV6()
    .filter((text) => !text.includes('.') && !/^[0:]*(ffff:)?[^:]*:[^:]*$/i.test(text))
    .map((text) => parseAddress(text)),
);

export const ranges: fc.Arbitrary<Prefix> = fc
  .tuple(addresses, fc.nat(128))
  .map(([address, length]) => maskPrefix(`${address}/${address.includes(':') ? length : length % 33}`));

const ports = fc.integer({ min: 1, max: 65535 });

const endpoints: fc.Arbitrary<SocketEndpoint> = fc.record({ host: addresses, port: ports });

const peers: fc.Arbitrary<DesiredPeer> = fc.record({
  publicKey: keys.map((key) => key as PublicKey),
  presharedKey: fc.option(keys.map((key) => new Secret(key))),
  allowedIps: fc.uniqueArray(ranges, { maxLength: 4 }),
  endpoint: fc.option(endpoints),
  keepalive: fc.option(ports),
});

/** Whatever the types of a configuration let through. */
export const tunnelConfigs: fc.Arbitrary<TunnelConfig> = fc.record({
  privateKey: keys.map((key) => new Secret(key)),
  listenPort: fc.option(ports),
  fwmark: fc.option(fc.integer({ min: 1, max: 0xffffffff })),
  mtu: fc.integer({ min: 576, max: 65535 }),
  address: fc
    .tuple(addresses, fc.nat(128))
    .map(([address, length]) => ({ address, length: address.includes(':') ? length : length % 33 })),
  peers: fc.array(peers, { maxLength: 4 }),
});
