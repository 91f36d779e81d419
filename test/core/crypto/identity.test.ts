import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  identityOf,
  isEnrollmentProven,
  isProven,
  makeIdentity,
  parseIdentityKey,
  proveEnrollment,
  proveKey,
  proveKeyAt,
} from '../../../src/core/crypto/identity.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { keyPair } from '../samples.ts';

const identity = makeIdentity(new Uint8Array(32).fill(7));
const other = makeIdentity(new Uint8Array(32).fill(8));
const { publicKey } = keyPair(1);
const now = new Date('2026-11-20T12:00:00.000Z');

describe('a proof of a key', () => {
  const proof = proveKey(identity, publicKey, now);

  it('holds for its identity, key and serial, and for nothing else', () => {
    expect(proof.serial).toBe(now.getTime());
    expect(isProven(identity.key, publicKey, proof)).toBe(true);
    expect(isProven(other.key, publicKey, proof)).toBe(false);
    expect(isProven(identity.key, keyPair(2).publicKey, proof)).toBe(false);
    expect(isProven(identity.key, publicKey, { ...proof, serial: proof.serial + 1 })).toBe(false);
    for (const signature of ['', 'x', proof.signature.replace(/^./, '*'), proof.signature.slice(0, 40)]) {
      expect(isProven(identity.key, publicKey, { ...proof, signature })).toBe(false);
    }
  });

  it('is a standard Ed25519 signature', () => {
    const x = Buffer.from(identity.key, 'base64').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const text = Buffer.from(`cpn key 1\n${publicKey}\n${proof.serial}\n`);
    expect(verify(null, text, key, Buffer.from(proof.signature, 'base64'))).toBe(true);
  });

  it('comes after the one before, at any clock time', () => {
    expect(proveKey(identity, publicKey, now, now.getTime() + 10).serial).toBe(now.getTime() + 11);
  });

  it('is the same again with the same serial', () => {
    expect(proveKeyAt(identity, publicKey, proof.serial)).toEqual(proof);
  });
});

describe('a proof of an enrolment', () => {
  const claim = { publicKey, tokenHash: 'aa' };
  const proof = proveEnrollment(identity, claim);

  it('holds for its identity, public key and enrolment key, and for nothing else', () => {
    expect(isEnrollmentProven(identity.key, claim, proof)).toBe(true);
    expect(isEnrollmentProven(other.key, claim, proof)).toBe(false);
    expect(isEnrollmentProven(identity.key, { ...claim, publicKey: keyPair(2).publicKey }, proof)).toBe(false);
    expect(isEnrollmentProven(identity.key, { ...claim, tokenHash: 'ab' }, proof)).toBe(false);
  });

  it('is of a domain of its own', () => {
    expect(isEnrollmentProven(identity.key, claim, proveKeyAt(identity, publicKey, 1).signature)).toBe(false);
    expect(isProven(identity.key, publicKey, { serial: 1, signature: proof })).toBe(false);
  });
});

it('an identity comes back from its seed, and is nothing but 32 bytes', () => {
  expect(identityOf(identity.seed).key).toBe(identity.key);
  expect(() => makeIdentity(new Uint8Array(31))).toThrow(RangeError);
  expect(() => identityOf(new Secret('AAAA'))).toThrow(InvalidValue);
  expect(parseIdentityKey(identity.key)).toBe(identity.key);
  for (const text of ['', 'AAAA', `${identity.key}\n`, identity.key.replace('=', '')]) {
    expect(() => parseIdentityKey(text)).toThrow('identity_key');
  }
});
