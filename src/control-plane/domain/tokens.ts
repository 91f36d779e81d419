import { createHash, createHmac } from 'node:crypto';
import { Secret } from '../../core/crypto/secret.ts';

/** Returns `size` unpredictable bytes. */
export type Random = (size: number) => Uint8Array;

/** The prefix shows the use of a token to people and to scanners for leaked secrets. */
export const tokenPrefixes = {
  enrollmentKey: 'cpn_',
  peer: 'cpp_',
  session: 'cpu_',
  personal: 'cpt_',
  device: 'cpd_',
  challenge: 'cpc_',
} as const;

type TokenPrefix = (typeof tokenPrefixes)[keyof typeof tokenPrefixes];

export function mintToken(prefix: TokenPrefix, random: Random): Secret {
  return new Secret(prefix + Buffer.from(random(32)).toString('base64url'));
}

/** Creates the token of a browser session: two halves of 256 random bits, each useless alone. */
export function mintSplitToken(random: Random): Secret {
  const key = Buffer.from(random(32)).toString('base64url');
  return new Secret(`${mintToken(tokenPrefixes.session, random).reveal()}.${key}`);
}

/** Splits a token into the cookie and the key for the page. The key identifies its cookie. */
export function splitToken(token: Secret): { readonly cookie: Secret; readonly key: Secret } {
  const [cookie = '', key = ''] = token.reveal().split('.');
  return { cookie: new Secret(cookie), key: new Secret(`${fingerprint(cookie)}.${key}`) };
}

/** Joins a key with the matching cookie to a token; null if no cookie matches. */
export function joinToken(cookies: readonly Secret[], key: string): Secret | null {
  const [, mark, half] = /^([\w-]{16})\.([\w-]{43})$/.exec(key) ?? [];
  const cookie = cookies.find((each) => fingerprint(each.reveal()) === mark);
  return cookie === undefined ? null : new Secret(`${cookie.reveal()}.${half}`);
}

/** 96 bits of a hash: they reveal neither the cookie nor another one that matches. */
function fingerprint(cookie: string): string {
  return createHash('sha256').update(`cpn session cookie\n${cookie}`).digest('base64url').slice(0, 16);
}

/** The stored form of a token or an idempotency key: enough to recognise it, not to use it. */
export function hashToken(token: Secret): string {
  return createHash('sha256').update(token.reveal()).digest('base64url');
}

/**
 * The access token of a peer that enrolled with an idempotency key. It is derived, so that every
 * replay returns the same token although only its hash is stored: no late replay voids an earlier
 * reply. It takes the salt, which never leaves the database, and the key, which is not in it.
 */
export function derivePeerToken(enrollmentKey: Secret, idempotencyKey: Secret, salt: string): Secret {
  const mac = createHmac('sha256', enrollmentKey.reveal()).update(
    `cpn peer token\n${salt}\n${idempotencyKey.reveal()}`,
  );
  return new Secret(tokenPrefixes.peer + mac.digest('base64url'));
}

/** How long a login proves the password, in milliseconds. */
export const freshLoginMs = 5 * 60 * 1000;
/** How long a login waits for its second factor, and a new factor for its proof. */
export const challengeMs = 5 * 60 * 1000;
/** How far the clock of the replica that took the login may be ahead. */
const clockToleranceMs = 5_000;

/** A login in the future may be old: its clock was ahead. It would count as fresh again later. */
export function isFreshLogin(login: string, now: Date): boolean {
  const ageMs = now.getTime() - Date.parse(login);
  return ageMs <= freshLoginMs && ageMs >= -clockToleranceMs;
}
