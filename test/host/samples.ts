import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { type KeyPair, makeKeyPair } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { type Address, parseAddress, parsePrefix } from '../../src/core/net/cidr.ts';
import type { DesiredPeer } from '../../src/core/wg-quick/parse.ts';

// A Secret hides its value from a comparison too.
expect.addEqualityTesters([
  (one: unknown, other: unknown) =>
    one instanceof Secret && other instanceof Secret ? one.reveal() === other.reveal() : undefined,
]);

export function newKeyPair(): KeyPair {
  return makeKeyPair(randomBytes(32));
}

export function newPresharedKey(): Secret {
  return new Secret(randomBytes(32).toString('base64'));
}

/** A peer with one allowed IP and nothing else, but for what `given` says. */
export function makePeer(given: Partial<DesiredPeer> = {}): DesiredPeer {
  return {
    publicKey: newKeyPair().publicKey,
    presharedKey: null,
    endpoint: null,
    allowedIps: [parsePrefix('10.77.0.9/32')],
    keepalive: null,
    ...given,
  };
}

export function at(host: string, port: number): { host: Address; port: number } {
  return { host: parseAddress(host), port };
}
