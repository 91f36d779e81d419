import { createHash, createHmac } from 'node:crypto';
import { Secret } from '../../core/crypto/secret.ts';

/** Gives that many unpredictable bytes. */
export type Random = (size: number) => Uint8Array;

/** What a token is for can be read off its first letters, by people and by scanners for leaked secrets. */
export const tokenPrefixes = { enrollmentKey: 'cpn_', peer: 'cpp_', session: 'cpu_', personal: 'cpt_' } as const;

type TokenPrefix = (typeof tokenPrefixes)[keyof typeof tokenPrefixes];

/** Makes a token of 256 random bits. */
export function mintToken(prefix: TokenPrefix, random: Random): Secret {
  return new Secret(prefix + Buffer.from(random(32)).toString('base64url'));
}

/** Makes the token of a browser's session: two halves of 256 random bits, each useless alone. */
export function mintSplitToken(random: Random): Secret {
  const key = Buffer.from(random(32)).toString('base64url');
  return new Secret(`${mintToken(tokenPrefixes.session, random).reveal()}.${key}`);
}

/** The half of a split token for the cookie, and the key for the page, which names the cookie that it fits. */
export function splitToken(token: Secret): { readonly cookie: Secret; readonly key: Secret } {
  const [cookie = '', key = ''] = token.reveal().split('.');
  return { cookie: new Secret(cookie), key: new Secret(`${fingerprint(cookie)}.${key}`) };
}

/** The token of a key and of the cookie among these that it fits; null without one. */
export function joinToken(cookies: readonly Secret[], key: string): Secret | null {
  const [, mark, half] = /^([\w-]{16})\.([\w-]{43})$/.exec(key) ?? [];
  const cookie = cookies.find((each) => fingerprint(each.reveal()) === mark);
  return cookie === undefined ? null : new Secret(`${cookie.reveal()}.${half}`);
}

/** 96 bits, from which neither the cookie nor another one that fits can be found. */
function fingerprint(cookie: string): string {
  return createHash('sha256').update(`cpn session cookie\n${cookie}`).digest('base64url').slice(0, 16);
}

/** What the database keeps of a token, or of an idempotency key: enough to recognise it, not enough to use it. */
export function hashToken(token: Secret): string {
  return createHash('sha256').update(token.reveal()).digest('base64url');
}

/**
 * The access token of a peer that enrolled with an idempotency key. It is derived, not drawn, so that every replay of
 * one enrolment gives the same token although only its hash is stored: no replay, however late it arrives, takes away
 * the token that an earlier reply brought. It takes both the salt, which never leaves the database, and
 * the enrolment key, which the database does not hold, to compute it.
 */
export function derivePeerToken(enrollmentKey: Secret, idempotencyKey: Secret, salt: string): Secret {
  const mac = createHmac('sha256', enrollmentKey.reveal()).update(
    `cpn peer token\n${salt}\n${idempotencyKey.reveal()}`,
  );
  return new Secret(tokenPrefixes.peer + mac.digest('base64url'));
}
