import { scrypt, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../core/secret.ts';
import { TooManyRequests } from './errors.ts';
import type { Random } from './tokens.ts';
import { createGate } from './turns.ts';

/** Hashes a password with a salt of its own. */
export async function hashPassword(password: Secret, random: Random): Promise<string> {
  const salt = Buffer.from(random(16));
  const hash = await derive(password, salt, current);
  return format(current, salt, hash);
}

/** True for the password that the hash was made of. Without a hash it is false, after the same work. */
export async function verifyPassword(password: Secret, stored: string | null): Promise<boolean> {
  const { cost, salt, hash } = parse(stored ?? nobodys);
  const derived = await derive(password, salt, cost);
  return timingSafeEqual(derived, hash) && stored !== null;
}

interface Cost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's choice for little memory: 16 MiB, about 0.15 s. A hash names its own cost, so that this can be raised. */
const current: Cost = { N: 2 ** 14, r: 8, p: 5 };
const hashLength = 32;
const nobodys = format(current, Buffer.alloc(16), Buffer.alloc(hashLength));

/** More at once would take the thread pool, and the memory, from everything else. */
const gate = createGate(2, 64, () => new TooManyRequests('logins at once', 1));

function derive(password: Secret, salt: Buffer, cost: Cost): Promise<Buffer> {
  return gate(
    () =>
      new Promise((resolve, reject) => {
        scrypt(password.reveal().normalize('NFKC'), salt, hashLength, cost, (error, key) =>
          error ? reject(error) : resolve(key),
        );
      }),
  );
}

function format({ N, r, p }: Cost, salt: Buffer, hash: Buffer): string {
  return ['scrypt', N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

function parse(stored: string): { cost: Cost; salt: Buffer; hash: Buffer } {
  const [, N, r, p, salt, hash] = stored.split('$');
  return {
    cost: { N: Number(N), r: Number(r), p: Number(p) },
    salt: Buffer.from(salt ?? '', 'base64url'),
    hash: Buffer.from(hash ?? '', 'base64url'),
  };
}
