import * as z from 'zod';
import { RemovalStatus } from '../../../contract/removal.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { readers } from '../../domain/caller.ts';
import type { Context } from '../../service/context.ts';
import { readRemovals } from '../../service/removals.ts';
import { type App, callerOf } from '../app.ts';
import { authenticateRequest } from '../authenticate.ts';
import { longestWait, readWait } from '../conditional-requests.ts';
import { createWaiting } from '../waiting.ts';
import { NetworkPath } from './parts.ts';

const headers = z.looseObject({
  prefer: z
    .string()
    .optional()
    .meta({
      description: `wait=N (RFC 7240): the reply may take N seconds, at most ${longestWait}, while a host that made a request lately may acknowledge the removal. A malformed value is ignored.`,
      example: 'wait=10',
    }),
});

/** Adds the route that shows which hosts may still reach a peer that left the map. */
export function addRemovalsRoute(app: App, context: Context): void {
  const wait = createWaiting();

  app.route({
    method: 'GET',
    url: '/api/networks/:network/removals',
    config: { access: readers },
    schema: {
      operationId: 'readRemovals',
      summary: 'Which hosts have not applied the last removal',
      description: [
        'A host acknowledges a revision when it requests the changes since it (If-None-Match with A-IM: cpn-delta): it has applied and',
        'saved that map. Listed are the hosts that have not acknowledged the revision in which the last peer left the map. Peers that',
        'never made a request, such as phones with a fixed profile, are not listed. With Prefer: wait=N the reply has Preference-Applied.',
      ].join('\n'),
      params: NetworkPath,
      headers,
      response: { 200: reply(RemovalStatus), 404: Refusal },
    },
    handler: async (request, response) => {
      const seconds = readWait(request.headers.prefer);
      const found = await wait(request, response, seconds, ({ signal, isDisconnected }) =>
        readRemovals(context, callerOf(request), request.params.network, {
          signal,
          isDisconnected,
          authenticate: () => authenticateRequest(context, request),
        }),
      );
      return found === null ? response.hijack() : { data: found };
    },
  });
}
