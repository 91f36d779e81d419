import nacl from 'tweetnacl';
import { InvalidValue } from './errors.ts';
import { Secret } from './secret.ts';

declare const brand: unique symbol;

/** A Curve25519 public key in base64. */
export type PublicKey = string & { readonly [brand]: 'PublicKey' };

export interface KeyPair {
  readonly privateKey: Secret;
  readonly publicKey: PublicKey;
}

/** Makes a key pair of 32 random bytes, clamped as `wg genkey` clamps (RFC 7748, section 5). */
export function makeKeyPair(random: Uint8Array): KeyPair {
  if (random.length !== nacl.scalarMult.scalarLength) throw new RangeError('a private key takes 32 random bytes');
  return keyPairOf(new Secret(Buffer.from(clamp(random)).toString('base64')));
}

/** Derives the public key, as `wg pubkey` does. */
export function keyPairOf(privateKey: Secret): KeyPair {
  const bytes = Buffer.from(privateKey.reveal(), 'base64');
  if (!keyPattern.test(privateKey.reveal()) || bytes.length !== nacl.scalarMult.scalarLength) {
    throw new InvalidValue('private key', undefined, 'is not 32 bytes in base64');
  }
  return { privateKey, publicKey: Buffer.from(nacl.scalarMult.base(bytes)).toString('base64') as PublicKey };
}

/** Parses a public key; base64 that does not decode to itself is refused, as `wg` refuses it. */
export function parsePublicKey(text: string, field = 'public_key'): PublicKey {
  if (!keyPattern.test(text) || Buffer.from(text, 'base64').toString('base64') !== text) {
    throw new InvalidValue(field, text, 'is not a WireGuard public key', 'it is 43 base64 characters and "="');
  }
  return text as PublicKey;
}

const keyPattern = /^[A-Za-z0-9+/]{43}=$/;

function clamp(random: Uint8Array): Uint8Array {
  const bytes = Uint8Array.from(random);
  bytes[0] = (bytes[0] ?? 0) & 248;
  bytes[31] = ((bytes[31] ?? 0) & 127) | 64;
  return bytes;
}
