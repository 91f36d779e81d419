import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import nacl from 'tweetnacl';
import { describe, expect, it } from 'vitest';
import { keyPairOf, makeKeyPair, parsePeerKey, parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';

const wg = (command: string, input?: string) =>
  execFileSync('wg', [command], { input, encoding: 'utf8', stdio: 'pipe' }).trim();

describe('key pairs', () => {
  it('derive the public key that wg pubkey derives', () => {
    for (let round = 0; round < 20; round += 1) {
      const { privateKey, publicKey } = makeKeyPair(randomBytes(32));
      expect(publicKey).toMatch(/^[A-Za-z0-9+/]{43}=$/);
      expect(publicKey).toBe(wg('pubkey', privateKey.reveal()));
    }
  });

  it('are clamped as those of wg genkey are', () => {
    const clamped = [
      makeKeyPair(new Uint8Array(32).fill(255)),
      makeKeyPair(new Uint8Array(32)),
      keyPairOf(new Secret(wg('genkey'))),
    ];
    for (const { privateKey } of clamped) {
      const bytes = Buffer.from(privateKey.reveal(), 'base64');
      expect([(bytes[0] ?? 0) & 7, (bytes[31] ?? 0) & 128, (bytes[31] ?? 0) & 64]).toEqual([0, 0, 64]);
    }
  });

  it('are made of exactly 32 bytes', () => {
    expect(() => makeKeyPair(new Uint8Array(31))).toThrow(RangeError);
    expect(() => keyPairOf(new Secret('short'))).toThrow(InvalidValue);
  });

  it('are made of no key that wg refuses', () => {
    const bitsTooMany = `${'A'.repeat(42)}B=`;
    expect(() => wg('pubkey', bitsTooMany)).toThrow();
    expect(() => keyPairOf(new Secret(bitsTooMany))).toThrow(InvalidValue);
  });

  it('do not show their private half', () => {
    const pair = makeKeyPair(randomBytes(32));
    const private64 = pair.privateKey.reveal();
    for (const text of [
      JSON.stringify(pair),
      inspect(pair, { depth: 9 }),
      String(pair.privateKey),
      `${pair.privateKey}`,
    ]) {
      expect(text).not.toContain(private64);
      expect(text).toContain('[secret]');
    }
  });

  it.each(['', 'A'.repeat(44), `${'A'.repeat(42)}B=`, `${'A'.repeat(43)}=\n`, `${'_'.repeat(43)}=`])(
    'refuse %j as a public key',
    (text) => {
      expect(() => parsePublicKey(text)).toThrow(InvalidValue);
    },
  );
});

describe('a key of a peer', () => {
  it.each([
    '00'.repeat(32),
    `01${'00'.repeat(31)}`,
    'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
    '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
    `ec${'ff'.repeat(30)}7f`,
    `ed${'ff'.repeat(30)}7f`,
    `ee${'ff'.repeat(30)}7f`,
  ])('is not %s, of which nothing comes but zeros, nor that with its highest bit set', (hex) => {
    const point = Buffer.from(hex, 'hex');
    expect(nacl.scalarMult(randomBytes(32), point)).toEqual(new Uint8Array(32));
    expect(() => parsePeerKey(point.toString('base64'))).toThrow(/a point of low order, which is no key/);
    point.writeUInt8(point.readUInt8(31) | 0x80, 31);
    expect(() => parsePeerKey(point.toString('base64'))).toThrow(InvalidValue);
  });

  it('is any other', () => {
    for (let round = 0; round < 100; round += 1) {
      const { publicKey } = makeKeyPair(randomBytes(32));
      expect(parsePeerKey(publicKey)).toBe(publicKey);
    }
  });
});
