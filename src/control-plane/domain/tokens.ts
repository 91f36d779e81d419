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
