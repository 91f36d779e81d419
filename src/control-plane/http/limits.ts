import type { ServerResponse } from 'node:http';
import rateLimit, { normalizeIP } from '@fastify/rate-limit';
import type { FastifyRequest } from 'fastify';
import { createFairMutex } from '../concurrency.ts';
import { Disconnected, Forbidden, TooManyRequests, Unauthenticated } from '../errors.ts';
import { createPeerChangeLimit } from '../service/peer-change-limit.ts';
import type { App } from './app.ts';
import { createRateWindows } from './rate-window.ts';

/** Limits per address and minute; `peerChanges` (of itself) and `peerReports` per peer at once. */
export interface Limits {
  readonly failedLogins: number;
  readonly failedEnrollments: number;
  readonly requests: number;
  readonly peerChanges: number;
  readonly peerReports: number;
  /** Changes of any kind that a user may make at once; one more per second. */
  readonly userChanges: number;
  /** Unread bytes of replies above which further requests of the caller are refused. */
  readonly unreadBytes: number;
}

export const defaultLimits: Limits = {
  failedLogins: 10,
  failedEnrollments: 20,
  requests: 6000,
  peerChanges: 30,
  peerReports: 30,
  userChanges: 600,
  unreadBytes: 32 * 1024 * 1024,
};

const timeWindow = 60_000;

/** Refuses all requests from an address that sends too many. */
export async function limitRequests(app: App, max: number, steadyNow: () => number): Promise<void> {
  await app.register(rateLimit, { global: false, store: createRateWindows(steadyNow) });
  const count = app.createRateLimit({ max, timeWindow });
  app.addHook('onRequest', async (request) => {
    const state = await count(request);
    if (!state.isAllowed && state.isExceeded) throw new TooManyRequests('requests', state.ttlInSeconds);
  });
}

/**
 * Limits a user's changes over all its sessions and tokens: each causes a revision, an audit entry
 * and a message to every host. A removal is never refused, but counts below the limit. Refused
 * requests and changes of the own account do not count: a thief must not block a new password. Own
 * devices are peers, and count.
 */
export function limitUserChanges(app: App, most: number, steadyNow: () => number): void {
  const limit = createPeerChangeLimit(most, steadyNow, 1000, 'changes of this user');
  const counted = new WeakMap<FastifyRequest, () => void>();
  // Some removals can only be recognised by their body.
  app.addHook('preHandler', async (request) => {
    const { caller, method, routeOptions } = request;
    if (caller?.kind !== 'user' || method === 'GET' || method === 'HEAD') return;
    if (/^\/api\/auth\/(?!devices\/)/.test(routeOptions.url ?? '')) return;
    const isRemoval = async () => method === 'DELETE' || (await routeOptions.config.isRemoval?.(request)) === true;
    const always = !limit.hasRoom(caller.userId) && (await isRemoval());
    counted.set(request, limit.take(caller.userId, always, routeOptions.config.countChanges?.(request)));
  });
  app.addHook('onResponse', async (request, { statusCode }) => {
    if (statusCode >= 400 && statusCode < 500) counted.get(request)?.();
  });
}

/**
 * Refuses a caller that leaves too much of its replies unread: they stay in memory. A caller is a
 * user with all tokens, a peer, or an address without a credential.
 */
export function limitUnreadReplies(app: App, mostBytes: number): void {
  const underWay = new Map<string, Set<ServerResponse>>();
  app.addHook('onRequest', async (request, { raw }) => {
    if (request.routeOptions.config.isHealthCheck) return;
    const caller = callerKey(request);
    const replies = underWay.get(caller) ?? new Set();
    const unread = [...replies].reduce((sum, { writableLength }) => sum + writableLength, 0);
    if (unread > mostBytes) throw new TooManyRequests('replies that wait to be read', unreadRetrySeconds);
    underWay.set(caller, replies.add(raw));
    raw.once('close', () => {
      replies.delete(raw);
      if (replies.size === 0 && underWay.get(caller) === replies) underWay.delete(caller);
    });
  });
}

const unreadRetrySeconds = 5;

function callerKey({ caller, ip }: FastifyRequest): string {
  if (caller === null) return `address ${normalizeIP(ip)}`;
  return caller.kind === 'user' ? `user ${caller.userId}` : `peer ${caller.peerId}`;
}

/** Refuses an origin after too many refused credentials. `subject`: a credential or an account. */
export type FailureLimit = <Result>(
  request: FastifyRequest,
  subject: string,
  work: () => Promise<Result>,
) => Promise<Result>;

interface FailureLimitOptions {
  /** Failures per minute. */
  readonly max: number;
  /** The maximum number of waiting requests of one origin. */
  readonly mostWaiting: number;
  readonly what: string;
  /** True for an error that counts; a refused credential if absent. */
  readonly isFailure?: (error: unknown) => boolean;
}

/**
 * Counts the failures of an origin: the request's session, else its address. Its requests run one
 * at a time: a burst must not make more guesses. Each subject has a queue: a flood for one account
 * delays no other. Skips requests of disconnected clients.
 */
export function limitFailures(app: App, options: FailureLimitOptions): FailureLimit {
  const { max, mostWaiting, what, isFailure = isRefusedCredential } = options;
  const count = app.createRateLimit({ max, timeWindow, keyGenerator: originOf });
  const takeTurn = createFairMutex(mostWaiting, () => new TooManyRequests(`${what} at once`, 1));
  return (request, subject, work) =>
    takeTurn(originOf(request), subject, async () => {
      if (request.raw.socket.destroyed) throw new Disconnected();
      const state = await count(request, { increment: false });
      if (!state.isAllowed && state.remaining === 0) {
        const origin = request.caller === null ? 'from this address' : 'in this session';
        throw new TooManyRequests(`failed ${what} ${origin}`, state.ttlInSeconds);
      }
      try {
        return await work();
      } catch (error) {
        if (isFailure(error)) await count(request);
        throw error;
      }
    });
}

/** Per session, so that other callers or a thief's session cannot use up the user's attempts. */
function originOf({ caller, ip }: FastifyRequest): string {
  return caller?.kind === 'user' ? `${caller.credential.kind} ${caller.credential.id}` : normalizeIP(ip);
}

/** A refused credential may be a guess. A request with a broken field guesses nothing. */
function isRefusedCredential(error: unknown): boolean {
  return error instanceof Unauthenticated || error instanceof Forbidden;
}
