import { scrypt, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../core/secret.ts';
import { TooManyRequests } from './errors.ts';
import type { Random } from './tokens.ts';
import { createGate } from './turns.ts';

/** What scrypt takes to hash a password. A hash names its own cost, so that this can be raised. */
export interface PasswordCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's choice for little memory: 16 MiB, about 0.15 s. */
export const usualPasswordCost: PasswordCost = { N: 2 ** 14, r: 8, p: 5 };

/** Hashes a password with a salt of its own. */
export async function hashPassword(password: Secret, random: Random, cost: PasswordCost): Promise<string> {
  const salt = Buffer.from(random(16));
  const hash = await derive(password, salt, cost);
  return format(cost, salt, hash);
}

/** True for the password that the hash was made of. Without a hash it is false, after work of this cost. */
export async function verifyPassword(password: Secret, stored: string | null, cost: PasswordCost): Promise<boolean> {
  const known = stored === null ? { cost, salt: Buffer.alloc(16), hash: Buffer.alloc(hashLength) } : parse(stored);
  const derived = await derive(password, known.salt, known.cost);
  return timingSafeEqual(derived, known.hash) && stored !== null;
}

const hashLength = 32;

/** More at once would take the thread pool, and the memory, from everything else. */
const gate = createGate(2, 64, () => new TooManyRequests('logins at once', 1));

function derive(password: Secret, salt: Buffer, cost: PasswordCost): Promise<Buffer> {
  return gate(
    () =>
      new Promise((resolve, reject) => {
        scrypt(password.reveal().normalize('NFKC'), salt, hashLength, cost, (error, key) =>
          error ? reject(error) : resolve(key),
        );
      }),
  );
}

function format({ N, r, p }: PasswordCost, salt: Buffer, hash: Buffer): string {
  return ['scrypt', N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

function parse(stored: string): { cost: PasswordCost; salt: Buffer; hash: Buffer } {
  const [, N, r, p, salt, hash] = stored.split('$');
  return {
    cost: { N: Number(N), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt ?? '', 'base64url'),
    hash: Buffer.from(hash ?? '', 'base64url'),
  };
}
