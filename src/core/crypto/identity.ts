import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { InvalidValue } from '../errors/index.ts';
import { type PublicKey, parsePublicKey } from './keys.ts';
import { Secret } from './secret.ts';

declare const brand: unique symbol;

/** An Ed25519 public key in base64. It identifies a host while its WireGuard keys change. */
export type IdentityKey = string & { readonly [brand]: 'IdentityKey' };

/** The key with which a host proves its WireGuard keys. It never leaves the host. */
export interface Identity {
  readonly seed: Secret;
  readonly key: IdentityKey;
}

/** A host's signature that a public key is its own. The proof with the highest serial is valid. */
export interface KeyProof {
  /** Milliseconds since 1970, or the previous serial plus one, whichever is higher. */
  readonly serial: number;
  /** An Ed25519 signature in base64. */
  readonly signature: string;
}

export function makeIdentity(random: Uint8Array): Identity {
  if (random.length !== seedLength) throw new RangeError('an identity takes 32 random bytes');
  return identityOf(new Secret(Buffer.from(random).toString('base64')));
}

/** Restores an identity from its seed. Derives its key at the first access. */
export function identityOf(seed: Secret): Identity {
  const bytes = Buffer.from(seed.reveal(), 'base64');
  if (bytes.length !== seedLength) throw new InvalidValue('identity', undefined, 'is not 32 bytes in base64');
  let key: IdentityKey | undefined;
  return {
    seed,
    get key() {
      key ??= deriveKey(bytes);
      return key;
    },
  };
}

function deriveKey(seed: Uint8Array): IdentityKey {
  const der = createPublicKey(signerOf(seed)).export({ format: 'der', type: 'spki' });
  return der.toString('base64', ed25519.length) as IdentityKey;
}

const seedLength = 32;

function signerOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([privateEd25519, seed]), format: 'der', type: 'pkcs8' });
}

/** The bytes before the 32 bytes of a seed in PKCS #8 (RFC 8410, section 7). */
const privateEd25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Parses an identity key, which has the format of a WireGuard key. */
export function parseIdentityKey(text: string, field = 'identity_key'): IdentityKey {
  try {
    return parsePublicKey(text) as string as IdentityKey;
  } catch {
    throw new InvalidValue(field, text, 'is not 32 bytes in base64');
  }
}

/** Proves that `publicKey` belongs to this host. `after` is the serial of its last proof. */
export function proveKey(identity: Identity, publicKey: PublicKey, now: Date, after = 0): KeyProof {
  return proveKeyAt(identity, publicKey, Math.max(now.getTime(), after + 1));
}

/** Creates the proof with exactly this serial. The result is deterministic. */
export function proveKeyAt(identity: Identity, publicKey: PublicKey, serial: number): KeyProof {
  return { serial, signature: signWith(identity, statement(publicKey, serial)) };
}

/** The data that an enrolment signs with an identity. */
export interface EnrollmentClaim {
  readonly publicKey: PublicKey;
  /** SHA-256 of the enrolment key, in hex. The key belongs to one network, and so identifies it. */
  readonly tokenHash: string;
}

/** Proves to the service that the holder of the identity sent this enrolment. */
export function proveEnrollment(identity: Identity, claim: EnrollmentClaim): string {
  return signWith(identity, enrollmentStatement(claim));
}

export function isEnrollmentProven(key: IdentityKey, claim: EnrollmentClaim, signature: string): boolean {
  return isSigned(key, enrollmentStatement(claim), signature);
}

/** Takes a fraction of a millisecond: in a key rotation, every host checks every peer. */
export function isProven(key: IdentityKey, publicKey: PublicKey, { serial, signature }: KeyProof): boolean {
  return isSigned(key, statement(publicKey, serial), signature);
}

function signWith({ seed }: Identity, text: Uint8Array): string {
  return sign(null, text, signerOf(Buffer.from(seed.reveal(), 'base64'))).toString('base64');
}

function isSigned(key: IdentityKey, text: Uint8Array, signature: string): boolean {
  const der = Buffer.concat([ed25519, Buffer.from(key, 'base64')]);
  const signer = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return verify(null, text, signer, Buffer.from(signature, 'base64'));
}

/** The bytes before the 32 bytes of an Ed25519 key in X.509 format (RFC 8410, section 4). */
const ed25519 = Buffer.from('302a300506032b6570032100', 'hex');

/** The signed text. An identity belongs to one host in one network, so it names neither. */
function statement(publicKey: PublicKey, serial: number): Uint8Array {
  return Buffer.from(`cpn key 1\n${publicKey}\n${serial}\n`);
}

/** Has another prefix than a key proof, so that neither is valid as the other. */
function enrollmentStatement({ publicKey, tokenHash }: EnrollmentClaim): Uint8Array {
  return Buffer.from(`cpn enroll 1\n${publicKey}\n${tokenHash}\n`);
}
