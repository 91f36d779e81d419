import type { ServerResponse } from 'node:http';
import * as z from 'zod';
import { deltaManipulation, Network, NetworkDelta } from '../../contract/network.ts';
import { Refusal, reply } from '../../contract/reply.ts';
import { type App, callerOf } from '../app.ts';
import { recognize } from '../authenticate.ts';
import { readersAndPeer } from '../caller.ts';
import { createHeldWaits, mostHeldWaits } from '../held-waits.ts';
import type { NetworkTexts } from '../network-text.ts';
import { createAwaitNetwork } from '../service/await-network.ts';
import type { Context } from '../service/context.ts';
import { formatETag, matches } from './etag.ts';
import { accepts, baseOf } from './instance-manipulation.ts';
import { NetworkPath } from './parts.ts';
import { readWait } from './prefer.ts';

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

/** Adds the reading of a network, which waits for another revision when it is asked to. */
export function addReadNetworkRoute(app: App, context: Context, texts: NetworkTexts): void {
  const awaitNetwork = createAwaitNetwork(context);
  const heldWaits = createHeldWaits();

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
        'With Prefer: wait=N besides, the reply waits up to N seconds for a revision other than the one named, and says',
        'so with Preference-Applied. Access is looked at again after the wait.',
        `A peer has at most ${mostHeldWaits.peer} replies that wait, a user ${mostHeldWaits.user}: one more ends the oldest one, which comes`,
        'without Preference-Applied.',
        'With A-IM: cpn-delta besides, the reply may be a 226 with what is different since the revision named, as long as',
        'that is remembered: peers are new or in place of those with the same id, removed ones are no more, all others are',
        'as they were. Delta-Base is the revision named, ETag the one that this makes of it.',
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
      const { signal, isGone, end, release } = startWait(response.raw, seconds ?? 0);
      const caller = callerOf(request);
      let isApplied = seconds !== null;
      const endEarly = () => {
        isApplied = false;
        end();
      };
      const letGo = signal.aborted ? () => {} : heldWaits.hold(caller, endEarly);
      const id = request.params.network;
      const found = await awaitNetwork(caller, id, {
        isKnown: (revision) => matches(named, formatETag(revision)),
        signal,
        isGone,
        recognize: () => recognize(context, request),
      })
        .finally(release)
        .finally(letGo);
      if (found === null) return response.hijack();
      if (isApplied) response.header('preference-applied', `wait=${seconds}`);
      // A connection that is kept would be as many again.
      else if (seconds !== null) response.header('connection', 'close');
      if (found.isKnown) {
        response.header('etag', formatETag(found.revision));
        return response.code(304).send();
      }
      const asking = { id, revision: found.revision };
      const since = accepts(request.headers['a-im'], deltaManipulation) ? baseOf(named) : null;
      const delta = since === null ? null : await texts.delta(asking, since);
      const { revision, base, bytes } = delta ?? (await texts.whole(asking));
      if (base !== null) response.headers({ im: deltaManipulation, 'delta-base': formatETag(base) });
      response.header('etag', formatETag(revision)).type('application/json; charset=utf-8');
      // The text was written by the schema of its status.
      return response.code(base === null ? 200 : 226).send(bytes as never);
    },
  });
}

/** A signal that aborts after so many seconds, when the client goes away, and when it is released. */
function startWait(response: ServerResponse, seconds: number) {
  const end = new AbortController();
  // Without a reason each would make an error of its own, with a stack.
  const abort = () => end.abort('over');
  let gone = response.destroyed;
  const leave = () => {
    gone = true;
    abort();
  };
  response.once('close', leave);
  const timer = seconds > 0 && !gone ? setTimeout(abort, seconds * 1000) : undefined;
  if (timer === undefined) abort();
  const release = () => {
    clearTimeout(timer);
    response.removeListener('close', leave);
    abort();
  };
  return { signal: end.signal, isGone: () => gone, end: abort, release };
}
