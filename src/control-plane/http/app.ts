import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { isLoopback } from '../../core/net/endpoint.ts';
import type { AccessRule, Caller, UserCaller } from '../domain/caller.ts';

/** The HTTP server that routes are added to. Request and reply types come from their schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Required: a route without it is an error at start. */
    access?: AccessRule;
    /** True if the route itself checks a peer's membership: its token may come from a cache. */
    looksUpPeers?: boolean;
    /**
     * True if a peer of a deleted network gets a 410 with the network's id and nonce, if requested.
     */
    statesDeletion?: boolean;
    /**
     * True if the route itself leaves out networks beyond its caller's limit, or is only about the
     * credential of the request. Without it, a limited caller gets a 403 on a route that is neither
     * below a network nor below `/api/auth/`.
     */
    appliesLimit?: boolean;
    /** Requested every few seconds, and logged only at debug level. */
    isHealthCheck?: boolean;
    /** The number of changes that a request counts as in its user's limit; one if absent. */
    countChanges?(request: FastifyRequest): number;
    /** True if a non-DELETE request only removes access or service. Limits permit all removals. */
    isRemoval?(request: FastifyRequest): boolean | Promise<boolean>;
    /**
     * Checks fields of a body beyond its schema, and throws InvalidRequest. If some fields break
     * the schema, it gets the valid ones, so that the refusal lists every broken rule.
     */
    checkFields?(fields: object, request: FastifyRequest): unknown;
  }
  interface FastifyRequest {
    caller: Caller | null;
  }
}

export function callerOf(request: Pick<FastifyRequest, 'caller'>): Caller {
  if (!request.caller) throw new Error('a route for anyone asked who calls');
  return request.caller;
}

export function userOf(request: Pick<FastifyRequest, 'caller'>): UserCaller {
  const caller = callerOf(request);
  if (caller.kind !== 'user') throw new Error('a route for peers asked which user calls');
  return caller;
}

/**
 * True for a program on this host without a proxy, which would admit every client. The requested
 * host must be loopback too: a page in a local browser may use a name that resolves to loopback.
 */
export function isDirect({
  socket,
  hostname,
  headers,
}: Pick<FastifyRequest, 'socket' | 'hostname' | 'headers'>): boolean {
  const forwarded = ['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'].some((name) => headers[name] !== undefined);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return !forwarded && isLoopback(socket.remoteAddress?.replace(/^::ffff:/, '') ?? '') && isLoopback(host);
}
