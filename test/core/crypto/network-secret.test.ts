import { execFileSync } from 'node:child_process';
import { randomBytes, webcrypto } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseNetworkSecret, presharedKeyOf, tagOf } from '../../../src/core/crypto/network-secret.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { keyPair } from '../samples.ts';

const bytes = Uint8Array.from({ length: 32 }, (_, at) => (at * at * 7 + at * 13 + 5) % 256);
const secret = parseNetworkSecret(bytes);
const { publicKey: one } = keyPair(1);
const { publicKey: other } = keyPair(2);
const { publicKey: third } = keyPair(3);

describe('a preshared key', () => {
  it('is what openssl makes of the secret too', () => {
    // openssl kdf -keylen 32 -kdfopt digest:SHA2-256 -kdfopt hexkey:05193b6b… -kdfopt info:'cpn preshared key 1\n7\nDu0F…\nWJEQ…\n' HKDF
    expect(presharedKeyOf(secret, 7, one, other).reveal()).toBe('7PsJHuyMdEqHATz/3un1j1SYqoPIIMrA1M8ptNThxGY=');
    expect(tagOf(secret)).toBe('3acbdb396e6561ea');
  });

  it.each([7, 8, null])('is what web cryptography makes of it in network %s', async (network) => {
    const info = Buffer.from(`cpn preshared key 1\n${network ?? ''}\n${one}\n${other}\n`);
    const key = await webcrypto.subtle.importKey('raw', bytes, 'HKDF', false, ['deriveBits']);
    const algorithm = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info };
    const derived = Buffer.from(await webcrypto.subtle.deriveBits(algorithm, key, 256)).toString('base64');
    expect(presharedKeyOf(secret, network, other, one).reveal()).toBe(derived);
  });

  it('is the same for both of a pair, and another for every pair, network and secret', () => {
    expect(presharedKeyOf(secret, 7, other, one).reveal()).toBe(presharedKeyOf(secret, 7, one, other).reveal());
    const keys = [
      presharedKeyOf(secret, 7, one, other),
      presharedKeyOf(secret, 7, one, third),
      presharedKeyOf(secret, 7, other, third),
      presharedKeyOf(secret, 8, one, other),
      presharedKeyOf(secret, null, one, other),
      presharedKeyOf(new Secret(Buffer.from(bytes.toReversed()).toString('base64')), 7, one, other),
    ].map((key) => key.reveal());
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.join()).not.toContain(Buffer.from(tagOf(secret), 'hex').toString('base64').slice(0, 10));
  });
});

describe('a file with a network secret', () => {
  const parse = (content: string | Uint8Array) => {
    const file = typeof content === 'string' ? Buffer.from(content) : content;
    return Buffer.from(parseNetworkSecret(file).reveal(), 'base64');
  };

  it('counts as its bytes, whatever they are', () => {
    const raw = Buffer.concat([bytes.subarray(0, 31), Buffer.from('\n')]);
    expect(parse(raw).equals(raw)).toBe(true);
    const longest = randomBytes(4096);
    expect(parse(longest).equals(longest)).toBe(true);
  });

  it('counts as its characters where it is a text, however its lines end', () => {
    const base64 = 'lKYjW3bAw7gx7jTcfTGUQ0hYQ5tZtUq9CqVZyqjJfWv2mD0R8nB1xXoEr5uPGkHs';
    const written = [base64, `${base64}\n`, `${base64}\r\n`, `\t${base64.slice(0, 40)}\n${base64.slice(40)}\n\n`];
    for (const text of written) expect(parse(text).toString()).toBe(base64);
    const made = ['openssl rand -base64 48', 'openssl rand -hex 32', 'wg genkey'].map((line) => {
      const [program = '', ...args] = line.split(' ');
      return execFileSync(program, args);
    });
    for (const file of made) expect(parse(file).toString()).toBe(file.toString().trim());
  });

  it.each([
    ['nothing', '', 'is empty'],
    ['white space', ' \n', 'is empty'],
    ['31 bytes', bytes.subarray(0, 31), 'is too short: 31 bytes'],
    ['24 bytes in base64', randomBytes(24).toString('base64'), 'is too short: 32 characters'],
    ['16 bytes in hexadecimal digits', 'b2f1c09a67d4e8350f1e2d3c4b5a6978', 'is too short: 32 characters'],
    ['31 bytes in them', `${randomBytes(31).toString('hex')}\n`, 'is too short: 62 characters'],
    ['more than 4096 bytes', randomBytes(4097), 'is longer than 4096 bytes'],
    ['zeros', new Uint8Array(64), 'is not random'],
    ['a key of one letter', 'A'.repeat(64), 'is not random'],
    ['a count', Uint8Array.from({ length: 64 }, (_, at) => at * 3 + 250), 'is not random'],
    ['the alphabet twice', 'abcdefghijklmnopqrstuvwxyz'.repeat(2), 'is not random'],
    ['few letters', 'canary'.repeat(9).concat('nay'), 'is not random'],
  ])('of %s is refused, and not shown', (_, content, rule) => {
    const file = typeof content === 'string' ? Buffer.from(content) : content;
    let message = '';
    try {
      parseNetworkSecret(file, '--network-secret-file s');
    } catch (error) {
      message = String(error);
    }
    expect(message).toMatch(/^InvalidValue: --network-secret-file s is .*; make one with "openssl rand -base64 48"/);
    expect(message).toContain(rule);
    expect(message).not.toContain('canary');
  });

  it('is taken whenever it is random: none of 2,000 is refused', () => {
    for (let round = 0; round < 500; round += 1) {
      const raw = randomBytes(32);
      for (const file of [raw, raw.toString('hex'), raw.toString('base64'), raw.toString('base64url')])
        expect(parse(file).length).toBeGreaterThanOrEqual(32);
    }
  });
});
