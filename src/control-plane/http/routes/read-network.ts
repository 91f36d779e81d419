import * as z from 'zod';
import { Network, NetworkDelta } from '../../../contract/network.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { deltaManipulation } from '../../../core/map/apply-delta.ts';
import { readersAndPeer } from '../../domain/caller.ts';
import { createLongPoll } from '../../push/long-poll.ts';
import type { MapCache } from '../../push/map-cache.ts';
import type { Context } from '../../service/context.ts';
import { type App, callerOf } from '../app.ts';
import { authenticateRequest } from '../authenticate.ts';
import { accepts, baseOf, formatETag, matches, readWait } from '../conditional-requests.ts';
import { createWaiting, maxWaits } from '../waiting.ts';
import { NetworkPath } from './parts.ts';

const headers = z.looseObject({
  'if-none-match': z.string().optional().meta({ description: 'The ETag of the revision that the caller has.' }),
  prefer: z.string().optional().meta({
    description:
      'wait=N (RFC 7240), with If-None-Match: the reply may take N seconds, at most 60. What is malformed is ignored.',
    example: 'wait=60',
  }),
  'a-im': z.string().optional().meta({
    description: 'cpn-delta (RFC 3229), with If-None-Match: what is different since the revision named will do.',
    example: deltaManipulation,
  }),
});

/** Adds the route that reads a network, with long polls. */
export function addReadNetworkRoute(app: App, context: Context, maps: MapCache): void {
  const awaitNetwork = createLongPoll(context);
  const wait = createWaiting();

  app.route({
    method: 'GET',
    url: '/api/networks/:network',
    config: { access: readersAndPeer, looksUpPeers: true },
    schema: {
      operationId: 'readNetwork',
      summary: 'A network with its peers',
      description: [
        'The strong ETag names one revision of the network in one history of the database: after a restore from a backup the ETags',
        'of what was lost match nothing. With If-None-Match the same revision is a 304.',
        'With If-None-Match and Prefer: wait=N the reply waits up to N seconds for a revision other than the one named, and has',
        'Preference-Applied. Access is checked again after the wait.',
        `A peer has at most ${maxWaits.peer} replies that wait, a user ${maxWaits.user}: one more ends the oldest one, which comes`,
        'without Preference-Applied.',
        'With If-None-Match and A-IM: cpn-delta the reply may be a 226 with the changes since the revision named, as long as',
        'they are recorded: peers are new or replace those with the same id, removed lists peers that are gone, all others are',
        'unchanged. Delta-Base is the revision named, ETag the new one.',
      ].join('\n'),
      params: NetworkPath,
      headers,
      response: {
        200: reply(Network),
        226: reply(NetworkDelta),
        304: z.undefined().meta({ description: 'The revision is still the one named.' }),
        404: Refusal,
      },
    },
    handler: async (request, response) => {
      const named = request.headers['if-none-match'];
      const seconds = named === undefined ? null : readWait(request.headers.prefer);
      const id = request.params.network;
      const found = await wait(request, response, seconds, ({ signal, isDisconnected }) =>
        awaitNetwork(callerOf(request), id, {
          isCurrent: (revision) => matches(named, formatETag(revision)),
          signal,
          isDisconnected,
          authenticate: () => authenticateRequest(context, request),
        }),
      );
      if (found === null) return response.hijack();
      if (found.isUnchanged) {
        response.header('etag', formatETag(found.revision));
        return response.code(304).send();
      }
      const wanted = { id, revision: found.revision };
      const since = accepts(request.headers['a-im'], deltaManipulation) ? baseOf(named) : null;
      const delta = since === null ? null : await maps.delta(wanted, since);
      const { revision, base, bytes } = delta ?? (await maps.whole(wanted));
      if (base !== null) response.headers({ im: deltaManipulation, 'delta-base': formatETag(base) });
      response.header('etag', formatETag(revision)).type('application/json; charset=utf-8');
      // The map cache serialized it by the schema of this status.
      return response.code(base === null ? 200 : 226).send(bytes as never);
    },
  });
}
