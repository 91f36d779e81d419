import type { ServerResponse } from 'node:http';
import * as z from 'zod';
import { Network, NetworkDelta } from '../../../contract/network.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { deltaManipulation } from '../../../core/map/apply-delta.ts';
import { type Caller, readersAndPeer } from '../../domain/caller.ts';
import { createLongPoll } from '../../push/long-poll.ts';
import type { MapCache } from '../../push/map-cache.ts';
import type { Context } from '../../service/context.ts';
import { type App, callerOf } from '../app.ts';
import { authenticateRequest } from '../authenticate.ts';
import { accepts, baseOf, formatETag, matches, readWait } from '../conditional-requests.ts';
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
  const addWait = createWaitLimit();

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
      const { signal, isDisconnected, end, release } = startWait(response.raw, seconds ?? 0);
      const caller = callerOf(request);
      let isApplied = seconds !== null;
      const endEarly = () => {
        isApplied = false;
        end();
      };
      const removeWait = signal.aborted ? () => {} : addWait(caller, endEarly);
      const id = request.params.network;
      const found = await awaitNetwork(caller, id, {
        isCurrent: (revision) => matches(named, formatETag(revision)),
        signal,
        isDisconnected,
        authenticate: () => authenticateRequest(context, request),
      })
        .finally(release)
        .finally(removeWait);
      if (found === null) return response.hijack();
      if (isApplied) response.header('preference-applied', `wait=${seconds}`);
      // A client that keeps the connection could wait again on it.
      else if (seconds !== null) response.header('connection', 'close');
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

/** A signal that aborts after so many seconds, when the client goes away, and when it is released. */
function startWait(response: ServerResponse, seconds: number) {
  const end = new AbortController();
  // Without a reason each would make an error of its own, with a stack.
  const abort = () => end.abort('over');
  let disconnected = response.destroyed;
  const leave = () => {
    disconnected = true;
    abort();
  };
  response.once('close', leave);
  const timer = seconds > 0 && !disconnected ? setTimeout(abort, seconds * 1000) : undefined;
  if (timer === undefined) abort();
  const release = () => {
    clearTimeout(timer);
    response.removeListener('close', leave);
    abort();
  };
  return { signal: end.signal, isDisconnected: () => disconnected, end: abort, release };
}

/** Long polls of one peer and of one user at once. A host has one, and after a lost connection perhaps an old one. */
export const maxWaits = { peer: 8, user: 200 } as const;

/**
 * Limits the long polls of each caller: each takes a connection. The function adds one and, if the caller is at its limit, calls `end` of
 * its oldest; it returns a function that removes it again.
 */
export function createWaitLimit(most: Readonly<Record<Caller['kind'], number>> = maxWaits) {
  /** The `end` functions of each caller, the oldest first. */
  const held = new Map<string, Set<() => void>>();
  return (caller: Caller, end: () => void): (() => void) => {
    const key = `${caller.kind} ${caller.kind === 'peer' ? caller.peerId : caller.userId}`;
    const ends = held.get(key) ?? new Set();
    held.set(key, ends);
    const [oldest] = ends;
    if (oldest !== undefined && ends.size >= most[caller.kind]) {
      ends.delete(oldest);
      oldest();
    }
    ends.add(end);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && held.get(key) === ends) held.delete(key);
    };
  };
}
