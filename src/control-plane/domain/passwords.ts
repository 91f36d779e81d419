import { scrypt, timingSafeEqual } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { normalizeIP } from '@fastify/rate-limit';
import type { Secret } from '../../core/crypto/secret.ts';
import { createFairSemaphore } from '../concurrency.ts';
import { TooManyRequests } from '../errors.ts';
import type { Random } from './tokens.ts';

/** The cost parameters of scrypt. A hash contains its own, so that the usual cost can be raised. */
export interface PasswordCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's choice for little memory: 16 MiB, about 0.15 s. */
export const usualPasswordCost: PasswordCost = { N: 2 ** 14, r: 8, p: 5 };

/** The address of a request, or the user of its session; null without a request. */
export type Origin = string | { readonly user: number } | null;

export async function hashPassword(
  password: Secret,
  random: Random,
  cost: PasswordCost,
  origin: Origin,
): Promise<string> {
  const salt = Buffer.from(random(16));
  const hash = await derive(password, salt, cost, origin);
  return format(cost, salt, hash);
}

/** True if the hash is of this password. Without a hash, does work of this cost, then false. */
export async function verifyPassword(
  password: Secret,
  stored: string | null,
  cost: PasswordCost,
  origin: Origin,
): Promise<boolean> {
  const known = stored === null ? { cost, salt: Buffer.alloc(16), hash: Buffer.alloc(hashLength) } : parse(stored);
  const derived = await derive(password, known.salt, known.cost, origin);
  return timingSafeEqual(derived, known.hash) && stored !== null;
}

const hashLength = 32;

/** More hashes at once would starve everything else of the thread pool and memory. */
const gate = createFairSemaphore({
  width: 2,
  queue: 64,
  groupOf: widen,
  refuse: () => new TooManyRequests('logins at once', 1),
});

function derive(password: Secret, salt: Buffer, cost: PasswordCost, origin: Origin): Promise<Buffer> {
  return gate(
    queueOf(origin),
    () =>
      new Promise((resolve, reject) => {
        scrypt(password.reveal().normalize('NFKC'), salt, hashLength, cost, (error, key) =>
          error ? reject(error) : resolve(key),
        );
      }),
  );
}

/** Queues a user with a session by user: a flood of logins must not delay its password change. */
function queueOf(origin: Origin): string {
  return typeof origin === 'object' && origin !== null ? `user ${origin.user}` : prefixOf(origin ?? '');
}

/** The /24 of an IPv4 or /64 of an IPv6 address, which often belongs to one customer. */
function prefixOf(address: string): string {
  const normal = normalizeIP(address);
  return isIPv4(normal) ? normal.slice(0, normal.lastIndexOf('.')) : normal;
}

/** The /16 of a /24 and the /48 of a /64: an attacker often has all of such a block. */
function widen(prefix: string): string {
  return prefix.includes(':') ? normalizeIP(prefix, 48) : prefix.split('.', 2).join('.');
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
