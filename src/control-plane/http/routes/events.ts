import * as z from 'zod';
import { Event } from '../../../contract/event.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { readers } from '../../domain/caller.ts';
import type { Context } from '../../service/context.ts';
import { readEvents } from '../../service/events.ts';
import { type App, callerOf } from '../app.ts';
import { authenticateRequest } from '../authenticate.ts';
import { longestWait, readWait } from '../conditional-requests.ts';
import { createWaiting, maxWaits } from '../waiting.ts';
import { digits, NetworkPath } from './parts.ts';

const defaultEvents = 100;
const maxEvents = 1_000;

const Which = z.object({
  after: digits(z.int().min(0)).optional().meta({
    description:
      'Only events after the one with this id; 0 for the oldest ones. An id that no event of the network has reached is ignored.',
  }),
  limit: digits(z.int().min(1).max(maxEvents))
    .optional()
    .meta({ description: `The maximum number of events; default: ${defaultEvents}.` }),
});

const headers = z.looseObject({
  prefer: z
    .string()
    .optional()
    .meta({
      description: `wait=N (RFC 7240), with after: where there is no event the reply may take N seconds, at most ${longestWait}. A malformed value is ignored.`,
      example: `wait=${longestWait}`,
    }),
});

export function addEventRoute(app: App, context: Context): void {
  const wait = createWaiting();

  app.route({
    method: 'GET',
    url: '/api/networks/:network/events',
    config: { access: readers },
    schema: {
      operationId: 'readEvents',
      summary: 'What happened in a network, oldest first',
      description: [
        'Without after, the reply has the newest events. To follow them, request again with after set to the id of the last event of the reply.',
        'With after and Prefer: wait=N the reply waits up to N seconds for an event, and has Preference-Applied. Access is checked again',
        `after the wait. A user has at most ${maxWaits.user} replies that wait: one more ends the oldest one, which comes without`,
        'Preference-Applied. Events are kept for 30 days, and 10,000 of a network.',
      ].join('\n'),
      params: NetworkPath,
      querystring: Which,
      headers,
      response: { 200: reply(z.array(Event)), 404: Refusal },
    },
    handler: async (request, response) => {
      const { after = null, limit = defaultEvents } = request.query;
      const seconds = after === null ? null : readWait(request.headers.prefer);
      const found = await wait(request, response, seconds, ({ signal, isDisconnected }) =>
        readEvents(context, callerOf(request), request.params.network, {
          after,
          limit,
          signal,
          isDisconnected,
          authenticate: () => authenticateRequest(context, request),
        }),
      );
      return found === null ? response.hijack() : { data: found };
    },
  });
}
