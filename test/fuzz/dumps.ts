import fc from 'fast-check';
import type { PublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import type { Device } from '../../src/core/host-state/actual.ts';
import { formatEndpoint } from '../../src/core/net/endpoint.ts';
import { addresses, keys, ranges } from './values.ts';

const publicKeys = keys.map((key) => key as PublicKey);

/** What the kernel may report of an interface. */
export const dumps: fc.Arbitrary<Device> = fc.record({
  publicKey: fc.option(publicKeys),
  listenPort: fc.nat(65535),
  fwmark: fc.option(fc.integer({ min: 1, max: 0xffffffff })),
  peers: fc.array(
    fc.record({
      publicKey: publicKeys,
      presharedKey: fc.option(keys.map((key) => new Secret(key))),
      endpoint: fc.option(fc.record({ host: addresses, port: fc.nat(65535) })),
      allowedIps: fc.uniqueArray(ranges, { maxLength: 4 }),
      keepalive: fc.option(fc.integer({ min: 1, max: 65535 })),
      latestHandshake: fc.option(fc.integer({ min: 1 })),
      rxBytes: fc.maxSafeNat(),
      txBytes: fc.maxSafeNat(),
    }),
    { maxLength: 4 },
  ),
});

/** `wg show IF dump`, or a part of `wg show all dump` where a link is named (wg(8)). */
export function dumpOf({ publicKey, listenPort, fwmark, peers }: Device, link?: string): string {
  const own = ['(none)', publicKey ?? '(none)', listenPort, fwmark === null ? 'off' : `0x${fwmark.toString(16)}`];
  const lines = peers.map((peer) => [
    peer.publicKey,
    peer.presharedKey?.reveal() ?? '(none)',
    peer.endpoint ? formatEndpoint(peer.endpoint) : '(none)',
    peer.allowedIps.join(',') || '(none)',
    ...[peer.latestHandshake ?? 0, peer.rxBytes, peer.txBytes, peer.keepalive ?? 'off'],
  ]);
  return [own, ...lines].map((fields) => `${[...(link === undefined ? [] : [link]), ...fields].join('\t')}\n`).join('');
}
