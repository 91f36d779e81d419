import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { AccessRule, Caller, UserCaller } from '../domain/caller.ts';

/** The HTTP server that routes are added to; request and reply types come from their schemas. */
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
    /** The route itself checks that a calling peer is still in its network, so its token may come from a cache. */
    looksUpPeers?: boolean;
    /** A peer of a deleted network gets a 410 with the id and the nonce of the network, where its request takes one. */
    statesDeletion?: boolean;
    /** Requested every few seconds, and logged at debug level only. */
    isHealthCheck?: boolean;
    /** How many changes of its user a request counts as; absent means one. */
    countChanges?(request: FastifyRequest): number;
    /** True where a request that is no DELETE takes access or service away, and nothing else: limits refuse no removal. */
    isRemoval?(request: FastifyRequest): boolean | Promise<boolean>;
    /**
     * Checks fields of a body beyond its schema, and throws InvalidRequest. It gets the fields that follow the schema where others do not,
     * so that the refusal names every field that breaks a rule.
     */
    checkFields?(fields: object, request: FastifyRequest): unknown;
  }
  interface FastifyRequest {
    caller: Caller | null;
  }
}

/** The caller, on a route that is not for anyone. */
export function callerOf(request: Pick<FastifyRequest, 'caller'>): Caller {
  if (!request.caller) throw new Error('a route for anyone asked who calls');
  return request.caller;
}

/** The calling user, on a route that is not for peers. */
export function userOf(request: Pick<FastifyRequest, 'caller'>): UserCaller {
  const caller = callerOf(request);
  if (caller.kind !== 'user') throw new Error('a route for peers asked which user calls');
  return caller;
}
