import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nameAuthorities, parseAuthorities, readAuthorities } from '../../../src/core/tls/authority-file.ts';
import { type Issued, ofAuthority, openAuthority } from '../../api/certificate-authority.ts';

const parse = (content: string | Uint8Array, now = Date.now()) =>
  parseAuthorities(Buffer.from(content), '--ca-file /ca.pem', now);
const day = 86_400_000;

const folder = mkdtempSync(join(tmpdir(), 'cpn-authorities-'));
let root: Issued;
let next: Issued;
let expired: Issued;

beforeAll(() => {
  const { issue } = openAuthority(folder);
  root = issue({ name: 'Office Root', extensions: ofAuthority });
  next = issue({ name: 'Next Root', extensions: ofAuthority, days: [5, 90] });
  expired = issue({ name: 'Old Root', extensions: ofAuthority, days: [-9, -2] });
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('a file of CAs', () => {
  it('gives each certificate in PEM, without the text between them', () => {
    const authorities = parse(`Bag Attributes\n  localKeyID: 01\n${root.cert}\n# \u001b[2J\n${next.cert}`);
    expect(authorities).toHaveLength(2);
    expect(authorities.join('')).toMatch(/^(-----BEGIN CERTIFICATE-----\n[\w+/=\n]+-----END CERTIFICATE-----\n){2}$/);
    expect(nameAuthorities(readAuthorities(authorities))).toBe('"Office Root" and 1 more');
  });

  it('is refused with a private key, which no message shows', () => {
    for (const content of [root.cert + root.key, root.key]) {
      expect(() => parse(content)).toThrow(/^--ca-file \/ca\.pem holds a private key; name a file that has the cert/);
    }
    expect(() => parse('-----BEGIN ENCRYPTED PRIVATE KEY-----\n')).toThrow('holds a private key');
    const [, line = ''] = root.key.split('\n');
    try {
      parse(root.key);
    } catch (error) {
      expect(String(error)).not.toContain(line);
    }
  });

  it('is refused without a certificate in PEM; for DER the remedy is the conversion', () => {
    const der = execFileSync('openssl', ['x509', '-in', root.certFile, '-outform', 'der']);
    expect(() => parse(der)).toThrow(/holds no certificate in PEM; convert it with "openssl x509 -inform der/);
    for (const content of ['', 'hello', '-----BEGIN PKCS7-----\n', readFileSync('/bin/true')]) {
      expect(() => parse(content)).toThrow('holds no certificate in PEM; name a file with the lines BEGIN CERTIFICATE');
    }
  });

  it('is refused with a certificate that cannot be read, by its number', () => {
    const broken = root.cert.replace(/MII.{20}/, 'MIIA');
    expect(() => parse(root.cert + broken)).toThrow(/has a certificate that cannot be read, number 2 of the file;/);
  });

  it('is refused with a certificate that has expired, or with none that is valid yet', () => {
    expect(() => parse(root.cert + expired.cert)).toThrow(
      /has the certificate of "Old Root", which expired on 20.* UTC; leave it out, or name the one that replaces it/,
    );
    expect(() => parse(root.cert, Date.now() + 91 * day)).toThrow(
      'has the certificate of "Office Root", which expired',
    );
    expect(() => parse(next.cert)).toThrow(/"Next Root", which is valid from 20.* UTC; if the clock .* is wrong/);
    expect(parse(next.cert, Date.now() + 6 * day)).toHaveLength(1);
  });
});
