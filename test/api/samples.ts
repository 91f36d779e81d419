import { createHash } from 'node:crypto';
import type { ClientOptions } from '../../src/api/http/client-options.ts';
import type { EnrollmentRequest } from '../../src/api/service.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';

export const source = { url: 'https://cp.example.net/api/networks/7', secrets: [] };

/** A public key for each word. */
export function keyOf(word: string | number): string {
  return createHash('sha256').update(String(word)).digest('base64');
}

/** Peer number `n` of 10.77.0.0/16, as our own service tells it. */
export function peerBody(n: number, changes: object = {}) {
  return {
    id: n,
    name: `host-${n}`,
    peer_type: 'origin',
    public_key: keyOf(n),
    address: `10.77.${n >> 8}.${n & 255}`,
    endpoint: '203.0.113.22:51820',
    created_at: '2026-03-01T12:00:00.000Z',
    ...changes,
  };
}

export function networkBody(changes: object = {}) {
  return {
    id: 7,
    name: 'office',
    description: 'what the office needs',
    private_cidr: '10.77.0.0/16',
    routes: ['192.168.10.0/24'],
    vpn_type: 'wireguard',
    revision: 12,
    peers: [peerBody(1), peerBody(2, { endpoint: null }), peerBody(3, { peer_type: 'connector', routes: [] })],
    ...changes,
  };
}

/** The body without one of its fields. */
export function without<Body extends object>(body: Body, field: string): Partial<Body> {
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== field)) as Partial<Body>;
}

export function enrollmentBody(changes: object = {}) {
  return { peer: peerBody(1), network: networkBody(), access_token: 'cpp_sample', ...changes };
}

export function enrollmentRequest(changes: Partial<EnrollmentRequest> = {}): EnrollmentRequest {
  return {
    token: new Secret('cpn_sample'),
    name: 'host-1',
    type: 'origin',
    publicKey: parsePublicKey(keyOf(1)),
    endpoint: null,
    idempotencyKey: 'idempotency-sample',
    ...changes,
  };
}

/** Options under which waiting takes no time: each wait is noted, and the clock put forward by it. */
export function unhurried(changes: ClientOptions = {}) {
  const sleeps: number[] = [];
  const retries: { attempt: number; delayMs: number; problem: string }[] = [];
  let elapsed = 0;
  const options: ClientOptions = {
    clock: {
      monotonic: () => elapsed,
      wall: () => Date.parse('2026-03-01T12:00:00.000Z') + elapsed,
      sleep: async (ms) => {
        sleeps.push(ms);
        elapsed += ms;
      },
    },
    random: () => 0.5,
    onRetry: (retry) => retries.push(retry),
    ...changes,
  };
  return { options, sleeps, retries };
}

/** What a promise fails with; fails itself when it doesn't. */
export async function failureOf(promise: Promise<unknown>): Promise<Error> {
  const [outcome] = await Promise.allSettled([promise]);
  if (outcome.status === 'fulfilled') throw new Error(`expected a failure, got ${JSON.stringify(outcome.value)}`);
  return outcome.reason;
}
