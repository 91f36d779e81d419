import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import nacl from 'tweetnacl';
import { InvalidValue } from '../errors/index.ts';
import { Secret } from './secret.ts';

declare const brand: unique symbol;

/** A Curve25519 public key in base64. */
export type PublicKey = string & { readonly [brand]: 'PublicKey' };

export interface KeyPair {
  readonly privateKey: Secret;
  readonly publicKey: PublicKey;
}

/** Creates a key pair from 32 random bytes, clamped like `wg genkey` (RFC 7748, section 5). */
export function makeKeyPair(random: Uint8Array): KeyPair {
  if (random.length !== nacl.scalarMult.scalarLength) throw new RangeError('a private key takes 32 random bytes');
  const { secretKey, publicKey } = nacl.box.keyPair.fromSecretKey(clamp(random));
  const privateKey = new Secret(Buffer.from(secretKey).toString('base64'));
  return { privateKey, publicKey: Buffer.from(publicKey).toString('base64') as PublicKey };
}

/**
 * Derives a missing public key at the first access, like `wg pubkey`. Node's X25519 takes 6 ms with
 * its module; tweetnacl would take 7 to 11 ms more.
 *
 * @throws InvalidValue if it is no key
 */
export function keyPairOf(privateKey: Secret, known?: PublicKey): KeyPair {
  const parsed = parseSecretKey(privateKey.reveal());
  let publicKey = known;
  return {
    privateKey,
    get publicKey() {
      publicKey ??= derivePublicKey(parsed);
      return publicKey;
    },
  };
}

function derivePublicKey(privateKey: Secret): PublicKey {
  const bytes = Buffer.from(privateKey.reveal(), 'base64');
  const key = createPrivateKey({ key: Buffer.concat([pkcs8, bytes]), format: 'der', type: 'pkcs8' });
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return der.subarray(-bytes.length).toString('base64') as PublicKey;
}

/** The bytes before the 32 bytes of a private X25519 key in PKCS #8 (RFC 8410, section 7). */
const pkcs8 = Buffer.from('302e020100300506032b656e04220420', 'hex');

/**
 * The SHA-256 of public key and address in base64url. Only a service that lists the peer can match
 * it. The key alone does not suffice: a peer can list a foreign key, but cannot choose its address.
 */
export function digestPeer({
  publicKey,
  address,
}: {
  readonly publicKey: PublicKey;
  readonly address: string;
}): string {
  return createHash('sha256').update(`${publicKey} ${address}`).digest('base64url');
}

/** The first bytes of a text's SHA-512, in hexadecimal. */
export function digestOf(text: string, bytes: number): string {
  return createHash('sha512').update(text).digest().toString('hex', 0, bytes);
}

/** Parses a private or preshared key as `wg` does. Deriving a key takes 1 ms and checks no more. */
export function parseSecretKey(text: string, field = 'private key'): Secret {
  if (!isKey(text)) throw new InvalidValue(field, undefined, 'is not 32 bytes in base64');
  return new Secret(text);
}

export function parsePublicKey(text: string, field = 'public_key'): PublicKey {
  if (!isKey(text)) {
    throw new InvalidValue(field, text, 'is not a WireGuard public key', 'it is 43 base64 characters and "="');
  }
  return text as PublicKey;
}

/** Refuses points of low order: no key pair has them, and no handshake succeeds with them. */
export function parsePeerKey(text: string, field = 'public_key'): PublicKey {
  const key = parsePublicKey(text, field);
  if (isWeak(key))
    throw new InvalidValue(field, text, 'is a point of low order, which is no key', 'the peer needs a new key pair');
  return key;
}

/** X25519 maps a point of low order to zeros for every private key, so no handshake succeeds. */
function isWeak(key: PublicKey): boolean {
  const point = Buffer.from(key, 'base64');
  // The highest bit is ignored (RFC 7748, section 5).
  point.writeUInt8(point.readUInt8(31) & 0x7f, 31);
  return weakPoints.has(point.toString('hex'));
}

/** Points of order 1, 2, 4, 8 of Curve25519 and its twist. 2^255-19 and 2^255-18 equal 0 and 1. */
const weakPoints: ReadonlySet<string> = new Set([
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
]);

/** 32 bytes leave two bits of the last character unused. `wg` refuses a key that sets them. */
const keyPattern = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

function isKey(text: string): boolean {
  return keyPattern.test(text);
}

function clamp(random: Uint8Array): Uint8Array {
  const bytes = Uint8Array.from(random);
  bytes[0] = (bytes[0] ?? 0) & 248;
  bytes[31] = ((bytes[31] ?? 0) & 127) | 64;
  return bytes;
}
