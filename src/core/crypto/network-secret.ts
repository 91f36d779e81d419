import { hkdfSync } from 'node:crypto';
import { InvalidValue } from '../errors/index.ts';
import type { PublicKey } from './keys.ts';
import { Secret } from './secret.ts';

const fewestBytes = 32;
const mostBytes = 4096;

/** Characters that encode 32 random bytes: as hexadecimal digits, and in base64 without padding. */
const fewestDigits = 64;
const fewestCharacters = 43;

/** Of 64 random hexadecimal digits, the smallest alphabet, fewer are different once in 10^12. */
const fewestDifferent = 10;

const remedy = 'make one with "openssl rand -base64 48", and bring the same file to every host of the network';

/**
 * Parses a secret file, to base64. Drops white space of a text: editors change it, and every host
 * needs the same result. Throws an InvalidValue if the secret cannot contain 32 random bytes, or is
 * plainly not random: its tag lets an attacker test guesses. The error contains no part of it.
 */
export function parseNetworkSecret(file: Uint8Array, field = 'network secret'): Secret {
  if (file.length > mostBytes) throw wrong(field, `is longer than ${mostBytes} bytes`);
  const text = Buffer.from(file).toString('latin1');
  const isText = /^[\t\n\r\x20-\x7e]*$/.test(text);
  const secret = isText ? Buffer.from(text.replace(/\s/g, ''), 'latin1') : Buffer.from(file);
  if (secret.length === 0) throw wrong(field, 'is empty');
  const fewestOfText = /^[0-9a-f]*$/i.test(secret.toString('latin1')) ? fewestDigits : fewestCharacters;
  if (secret.length < (isText ? fewestOfText : fewestBytes)) {
    const unit = isText ? 'characters' : 'bytes';
    throw wrong(field, `is too short: ${secret.length} ${unit} do not hold ${fewestBytes} random bytes`);
  }
  if (isPattern(secret)) throw wrong(field, 'is not random');
  return new Secret(secret.toString('base64'));
}

/**
 * The preshared key of two peers, the same on both. WireGuard mixes it into their handshakes in
 * addition to the key exchange (Noise IKpsk2; WireGuard whitepaper, section 5.2), so a host without
 * the secret completes none. Recorded traffic stays secret from a quantum computer, which breaks
 * Curve25519 but no symmetric key of 256 bits.
 */
export function presharedKeyOf(
  secret: Secret,
  network: string | number | null,
  one: PublicKey,
  other: PublicKey,
): Secret {
  const [first, second] = one < other ? [one, other] : [other, one];
  const label = `cpn preshared key 1\n${network ?? ''}\n${first}\n${second}\n`;
  return new Secret(derive(secret, label, 32).toString('base64'));
}

/**
 * A tag by which hosts with the same secret recognize each other: 16 hexadecimal digits. It is the
 * same in all networks, because a host sends it before it learns its network. It reveals nothing
 * about a random secret or the keys derived from it.
 */
export function tagOf(secret: Secret): string {
  return derive(secret, 'cpn network secret tag 1\n', 8).toString('hex');
}

/** HKDF-SHA256 (RFC 5869) without a salt, which a random secret does not need. */
function derive(secret: Secret, label: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(secret.reveal(), 'base64'), '', label, bytes));
}

/** True for few different bytes, a repeated sequence, or a count up or down. */
function isPattern(secret: Buffer): boolean {
  const step = (secret[1] ?? 0) - (secret[0] ?? 0);
  const counts = secret.every((byte, at) => at === 0 || ((byte - (secret[at - 1] ?? 0) - step) & 255) === 0);
  const repeats = Buffer.concat([secret, secret]).indexOf(secret, 1) < secret.length;
  return counts || repeats || new Set(secret).size < fewestDifferent;
}

function wrong(field: string, rule: string): InvalidValue {
  return new InvalidValue(field, undefined, rule, remedy);
}
