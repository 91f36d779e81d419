import type { ServerResponse } from 'node:http';
import * as z from 'zod';
import { Network } from '../../contract/network.ts';
import { Refusal, reply } from '../../contract/reply.ts';
import { type App, callerOf } from '../app.ts';
import { recognize } from '../authenticate.ts';
import { readersAndPeer } from '../caller.ts';
import { createAwaitNetwork } from '../service/await-network.ts';
import type { Context } from '../service/context.ts';
import { formatETag, matches } from './etag.ts';
import { NetworkPath } from './parts.ts';
import { readWait } from './prefer.ts';

const headers = z.looseObject({
  'if-none-match': z.string().optional().meta({ description: 'The ETag of the revision that the caller has.' }),
  prefer: z.string().optional().meta({
    description:
      'wait=N (RFC 7240), with If-None-Match: the reply may take N seconds, at most 60. What is malformed is ignored.',
    example: 'wait=60',
  }),
});

/** Adds the reading of a network, which waits for another revision when it is asked to. */
export function addReadNetworkRoute(app: App, context: Context): void {
  const awaitNetwork = createAwaitNetwork(context);
  // Those who share a map share its text too.
  const texts = new WeakMap<Network, string>();

  app.route({
    method: 'GET',
    url: '/api/networks/:network',
    config: { access: readersAndPeer },
    schema: {
      operationId: 'readNetwork',
      summary: 'A network with its peers',
      description: [
        "The strong ETag is the network's revision; with If-None-Match the same revision is a 304.",
        'With Prefer: wait=N besides, the reply waits up to N seconds for a revision other than the one named, and says',
        'so with Preference-Applied. Access is looked at again after the wait.',
      ].join('\n'),
      params: NetworkPath,
      headers,
      response: {
        200: reply(Network),
        304: z.undefined().meta({ description: 'The revision is still the one named.' }),
        404: Refusal,
      },
    },
    handler: async (request, response) => {
      const named = request.headers['if-none-match'];
      const seconds = named === undefined ? null : readWait(request.headers.prefer);
      const { signal, isGone, release } = startWait(response.raw, seconds ?? 0);
      const found = await awaitNetwork(callerOf(request), request.params.network, {
        isKnown: (revision) => matches(named, formatETag(revision)),
        signal,
        isGone,
        recognize: () => recognize(context, request),
      }).finally(release);
      if (found === null) return response.hijack();
      if (seconds !== null) response.header('preference-applied', `wait=${seconds}`);
      response.header('etag', formatETag(found.revision));
      const { network } = found;
      if (network === null) return response.code(304).send();
      const text = texts.get(network) ?? String(response.code(200).serialize({ data: network }));
      texts.set(network, text);
      return response
        .code(200)
        .type('application/json; charset=utf-8')
        .serializer(() => text)
        .send({ data: network });
    },
  });
}

/** A signal that aborts after so many seconds, when the client goes away, and when it is released. */
function startWait(response: ServerResponse, seconds: number) {
  const end = new AbortController();
  let gone = response.destroyed;
  const leave = () => {
    gone = true;
    end.abort();
  };
  response.once('close', leave);
  const timer = seconds > 0 && !gone ? setTimeout(() => end.abort(), seconds * 1000) : undefined;
  if (timer === undefined) end.abort();
  const release = () => {
    clearTimeout(timer);
    response.removeListener('close', leave);
    end.abort();
  };
  return { signal: end.signal, isGone: () => gone, release };
}
