import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { LongPoll } from '../push/long-poll.ts';
import type { MapText } from '../push/map-cache.ts';
import { type Inbox, type MessageBatch, nothing } from '../push/peer-messages.ts';
import type { ObservedRevision } from '../push/snapshot.ts';
import { formatETag } from '../push/to-contract.ts';
import type { Context } from '../service/context.ts';
import type { Revision } from '../store/changes.ts';
import { callerOf } from './app.ts';
import { authenticateRequest } from './authenticate.ts';
import { baseOf, longestWait, matches, readWait } from './conditional-requests.ts';
import { createWaiting } from './waiting.ts';

export const conditionalHeaders = z.looseObject({
  'if-none-match': z.string().optional().meta({ description: 'The ETag of the revision that the caller has.' }),
  prefer: z
    .string()
    .optional()
    .meta({
      description: `wait=N (RFC 7240), with If-None-Match: the reply may take N seconds, at most ${longestWait}. A malformed value is ignored.`,
      example: `wait=${longestWait}`,
    }),
});

export interface ConditionalResult {
  readonly revision: ObservedRevision;
  /** A caller with another revision gets messages only if it states receipts. */
  readonly batch: MessageBatch;
  /** The map of a peer that waits for approval; absent for every other caller. */
  readonly waitingMap?: MapText;
}

/** Waits for a new revision or messages. Null after a 304, or if the caller has disconnected. */
export type ConditionalRead = (
  request: FastifyRequest,
  response: FastifyReply,
  network: number,
  inbox?: Inbox | null,
) => Promise<ConditionalResult | null>;

/** @param onCurrent called before the wait of a request that names the current revision */
export function createConditionalRead(
  context: Context,
  poll: LongPoll,
  onCurrent: (request: FastifyRequest, revision: Revision) => void = () => {},
): ConditionalRead {
  const wait = createWaiting();
  return async (request, response, network, inbox = null) => {
    const named = request.headers['if-none-match'];
    const seconds = named === undefined ? null : readWait([request.headers.prefer].flat().join(', '));
    const found = await wait(request, response, seconds, ({ signal, isDisconnected, end }) => {
      const unsubscribe = inbox?.subscribe(end);
      return poll(callerOf(request), network, {
        isCurrent: (revision) => {
          const etag = formatETag(revision);
          const base = baseOf(named);
          if (base !== null && formatETag(base) === etag) onCurrent(request, revision);
          return matches(named, etag);
        },
        signal,
        isDisconnected,
        authenticate: () => authenticateRequest(context, request),
      }).finally(unsubscribe);
    });
    if (found === null) {
      response.hijack();
      return null;
    }
    const { revision, isUnchanged, waitingMap } = found;
    const batch = inbox && (isUnchanged || inbox.hasReceipts) ? await inbox.read() : nothing;
    if (!isUnchanged || batch.messages.length > 0) return { revision, batch, ...(waitingMap && { waitingMap }) };
    response.header('etag', formatETag(revision));
    response.code(304).send();
    return null;
  };
}
