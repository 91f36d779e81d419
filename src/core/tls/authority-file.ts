import { X509Certificate } from 'node:crypto';
import { InvalidValue } from '../errors/index.ts';
import { type Certificate, instant, readCertificateFile } from './certificate.ts';

/**
 * Parses the CA file of the flag or variable `from` to PEM, without the text between certificates.
 * `now` is in milliseconds since the epoch.
 *
 * @throws InvalidValue if the file contains a private key, no certificate, or one that is expired
 *   or unreadable
 */
export function parseAuthorities(content: Uint8Array, from: string, now: number): string[] {
  const text = Buffer.from(content).toString('latin1');
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) {
    const remedy =
      'name a file that has the certificates alone; the key stays with the CA, and nothing of it was stored';
    throw new InvalidValue(from, undefined, 'holds a private key', remedy);
  }
  const blocks = text.match(pemBlock) ?? [];
  if (blocks.length === 0) {
    const remedy = isDer(content)
      ? 'convert it with "openssl x509 -inform der -in FILE -out ca.pem"'
      : 'name a file with the lines BEGIN CERTIFICATE and END CERTIFICATE';
    throw new InvalidValue(from, undefined, 'holds no certificate in PEM', remedy);
  }
  const authorities = blocks.map((block, index) => normalize(block, from, index + 1));
  const certificates = readAuthorities(authorities);
  const expired = certificates.find(({ validTo }) => validTo <= now);
  const clock = 'if the clock of this host is wrong: timedatectl set-ntp true';
  if (expired !== undefined) {
    const rule = `has the certificate of "${expired.subject}", which expired on ${instant(expired.validTo)}`;
    throw new InvalidValue(from, undefined, rule, `leave it out, or name the one that replaces it; ${clock}`);
  }
  const [first] = certificates;
  if (first !== undefined && certificates.every(({ validFrom }) => validFrom > now)) {
    const rule = `has the certificate of "${first.subject}", which is valid from ${instant(first.validFrom)}`;
    throw new InvalidValue(from, undefined, rule, clock);
  }
  return authorities;
}

/** Parses the certificates that {@link parseAuthorities} returned. */
export function readAuthorities(authorities: readonly string[]): Certificate[] {
  return readCertificateFile(authorities.join(''));
}

/** The names of CAs for messages, such as `"Office Root" and 2 more`. */
export function nameAuthorities(authorities: readonly Certificate[]): string {
  const [first, ...others] = authorities;
  if (first === undefined) return 'no CA';
  return `"${first.subject}"${others.length === 0 ? '' : ` and ${others.length} more`}`;
}

const pemBlock = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g;

function normalize(block: string, from: string, number: number): string {
  try {
    return new X509Certificate(block).toString();
  } catch {
    const rule = `has a certificate that cannot be read, number ${number} of the file`;
    throw new InvalidValue(from, undefined, rule, 'copy the file again from the CA');
  }
}

/** An ASN.1 sequence, with which a certificate, PKCS #7 and PKCS #12 start. */
function isDer(content: Uint8Array): boolean {
  return content[0] === 0x30;
}
