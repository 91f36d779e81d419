import { Secret as Key, TOTP } from 'otpauth';
import { Secret } from '../../core/crypto/secret.ts';
import { hashToken, type Random } from './tokens.ts';

export const totpSeconds = 30;
/** Steps that the clock of a phone may be ahead or behind. */
const skewSteps = 1;

/** The secret of an authenticator app in base32: 160 bits, as RFC 4226 recommends. */
export function mintTotpSecret(random: Random): string {
  return new Key({ buffer: Uint8Array.from(random(20)).buffer }).base32;
}

/** The URI that authenticator apps read from a QR code. */
export function toTotpUri(secret: string, { issuer, email }: { readonly issuer: string; readonly email: string }) {
  return appOf(secret, { issuer, label: email }).toString();
}

/**
 * Returns the step of a code at this time; null for a wrong code, and for one of `lastStep` or
 * before: a code is accepted once (RFC 6238, 5.2).
 */
export function findTotpStep(
  { secret, lastStep }: { readonly secret: string; readonly lastStep: number },
  code: string,
  now: Date,
): number | null {
  const token = code.replace(/\s/g, '');
  if (!/^[0-9]{6}$/.test(token)) return null;
  const delta = appOf(secret).validate({ token, timestamp: now.getTime(), window: skewSteps });
  if (delta === null) return null;
  const step = Math.floor(now.getTime() / 1000 / totpSeconds) + delta;
  return step > lastStep ? step : null;
}

/** Apps ignore other algorithms, lengths and periods than these. */
function appOf(secret: string, names: { readonly issuer?: string; readonly label?: string } = {}): TOTP {
  return new TOTP({ ...names, secret: Key.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: totpSeconds });
}

const recoveryCodes = 10;
/** Base32 without the digits and letters that look alike. */
const letters = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** Codes of 80 random bits: their hashes cannot be searched. */
export function mintRecoveryCodes(random: Random): string[] {
  return Array.from({ length: recoveryCodes }, () => {
    const code = [...random(16)].map((byte) => letters[byte % letters.length]).join('');
    return code.replace(/(.{4})(?=.)/g, '$1-');
  });
}

/** The stored form of a code, however it is typed. */
export function hashRecoveryCode(code: string): string {
  return hashToken(new Secret(`cpn recovery code\n${code.toUpperCase().replace(/[^A-Z0-9]/g, '')}`));
}
