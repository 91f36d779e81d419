import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { NetworkDelta, NetworkReading, peerMessageKinds } from '../../../contract/network.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { deltaManipulation } from '../../../core/map/apply-delta.ts';
import { readersAndWaitingPeer } from '../../domain/caller.ts';
import type { Acknowledgements } from '../../health/acknowledgements.ts';
import type { LostConnections } from '../../health/lost-connections.ts';
import { createLongPoll } from '../../push/long-poll.ts';
import type { MapCache } from '../../push/map-cache.ts';
import type { Inbox, PeerMessages } from '../../push/peer-messages.ts';
import { addMessages } from '../../push/serialized-network.ts';
import { formatETag } from '../../push/to-contract.ts';
import { createWaitingPoll } from '../../push/waiting-poll.ts';
import type { Context } from '../../service/context.ts';
import type { Revision } from '../../store/changes.ts';
import { type App, callerOf } from '../app.ts';
import { deletionHeader, instanceHeader } from '../authenticate.ts';
import { conditionalHeaders, createConditionalRead } from '../conditional-read.ts';
import { accepts, baseOf, readWait } from '../conditional-requests.ts';
import { maxWaits } from '../waiting.ts';
import { NetworkPath } from './parts.ts';

const headers = conditionalHeaders.extend({
  'a-im': z.string().optional().meta({
    description:
      'cpn-delta (RFC 3229), with If-None-Match: the caller accepts only the changes since the named revision.',
    example: deltaManipulation,
  }),
  [instanceHeader]: z.string().optional().meta({
    description:
      'By the daemon of a host: 16 hexadecimal digits, chosen at random at each of its starts. If an earlier one returns, two hosts use the identity of the peer.',
    example: '0f1e2d3c4b5a6978',
  }),
  [deletionHeader]: z.string().optional().meta({
    description:
      'By a host that takes its tunnel down where its network was deleted: follow, or applied while the tunnel is down for that reason.',
    example: 'follow',
  }),
  'peer-messages': z
    .string()
    .optional()
    .meta({
      description: 'By the peer itself, with A-IM: cpn-delta: the kinds of messages that it takes.',
      example: peerMessageKinds.join(', '),
    }),
  'peer-messages-receipt': z
    .string()
    .optional()
    .meta({
      maxLength: 128,
      description: [
        'By the peer itself: receipt of the last reply that it received, or none. The messages that it names are not repeated. Without',
        'this header, each message comes once, and is lost with its reply.',
      ].join('\n'),
      example: '41.42',
    }),
});

export interface MapReads {
  readonly maps: MapCache;
  readonly acknowledgements: Pick<Acknowledgements, 'note'>;
  readonly messages: Pick<PeerMessages, 'open' | 'acknowledge'>;
  readonly losses: Pick<LostConnections, 'watch'>;
}

export function addReadNetworkRoute(
  app: App,
  context: Context,
  { maps, acknowledgements, messages, losses }: MapReads,
): void {
  /** Only a delta request proves that the host applied the revision: a host may refuse a map. */
  const acknowledge = (request: FastifyRequest, revision: Revision) => {
    const caller = callerOf(request);
    const isApplied = accepts([request.headers['a-im']].flat().join(), deltaManipulation);
    if (caller.kind === 'peer' && !caller.awaitsApproval && isApplied) acknowledgements.note(caller, revision.revision);
  };
  const openInbox = async (request: FastifyRequest, takesDelta: boolean): Promise<Inbox | null> => {
    const caller = callerOf(request);
    if (caller.kind !== 'peer' || caller.awaitsApproval) return null;
    const receipt = request.headers['peer-messages-receipt'];
    if (receipt !== undefined) await messages.acknowledge(caller, `${receipt}`);
    const kinds = peerMessageKinds.filter((kind) => accepts([request.headers['peer-messages']].flat().join(), kind));
    return takesDelta && kinds.length > 0 ? messages.open(caller, { kinds, hasReceipts: receipt !== undefined }) : null;
  };
  const poll = createLongPoll(context);
  const pollWaiting = createWaitingPoll(context);
  const pollAny: typeof poll = (caller, ...rest) =>
    caller.kind === 'peer' && caller.awaitsApproval ? pollWaiting(caller, ...rest) : poll(caller, ...rest);
  const readConditionally = createConditionalRead(context, pollAny, acknowledge);

  app.route({
    method: 'GET',
    url: '/api/networks/:network',
    config: { access: readersAndWaitingPeer, looksUpPeers: true, statesDeletion: true },
    schema: {
      operationId: 'readNetwork',
      summary: 'A network with its peers',
      description: [
        'The strong ETag names one revision of the network in one history of the database: after a restore from a backup the ETags',
        'of what was lost match nothing. etag in the body is the same, where a proxy cannot change it: prefer it to the header.',
        'With If-None-Match the same revision is a 304. If-None-Match may name an ETag as a compressing proxy writes it: weak, or with a',
        'suffix such as -gzip.',
        'With If-None-Match and Prefer: wait=N the reply waits up to N seconds for a revision other than the one named, and has',
        'Preference-Applied. Access is checked again after the wait.',
        `A peer has at most ${maxWaits.peer} replies that wait, a user ${maxWaits.user}: one more ends the oldest one, which comes`,
        'without Preference-Applied.',
        'With If-None-Match and A-IM: cpn-delta the reply may be a 226 with the changes since the revision named, as long as',
        'they are recorded: peers are new or replace those with the same id, removed lists peers that are gone, all others are',
        'unchanged. Delta-Base is the ETag of If-None-Match, as it came; ETag is the new one. base in the body is the ETag that the',
        'changes apply to. A whole map has no base: read a reply with it as changes, whatever its status is behind a proxy.',
        'A whole map in reply to If-None-Match lists in removed which peers are gone since the revision named, as long as the changes',
        'are recorded.',
        'With Peer-Messages in addition, a 226 may come before the wait is over: without changes, and with messages for the caller alone.',
        'They come again until a request has their receipt in Peer-Messages-Receipt, or for 15 seconds.',
        'A peer that waits for approval reads itself alone, with awaiting_approval, and without routes, rules and messages. Its ETag is',
        'none of the network, so that after the approval the reply is the whole network, and its wait ends at once.',
        'A peer of a deleted network gets a 410 with the id and the nonce of the network, for 90 days and with Network-Deletion; without',
        'that header, and any other caller, a 401 or a 404. Another 410 may come from a proxy, and does not state a deletion.',
        'A reply to a peer of which several hosts make requests has Peer-Cloned-Since, until ten minutes after the last sign of that.',
      ].join('\n'),
      params: NetworkPath,
      headers,
      response: {
        200: reply(NetworkReading),
        226: reply(NetworkDelta),
        304: z.undefined().meta({ description: 'The revision is unchanged.' }),
        404: Refusal,
        410: Refusal,
      },
    },
    handler: async (request, response) => {
      const id = request.params.network;
      const named = request.headers['if-none-match'];
      const since = baseOf(named);
      const takesDelta = since !== null && accepts(request.headers['a-im'], deltaManipulation);
      const caller = callerOf(request);
      const isListed = caller.kind !== 'peer' || !caller.awaitsApproval;
      if (isListed && mayWait(request)) losses.watch(caller, response.raw);
      const found = await readConditionally(request, response, id, await openInbox(request, takesDelta));
      if (found === null) return response;
      const wanted = { id, revision: found.revision };
      const { waitingMap } = found;
      const delta = takesDelta && !waitingMap ? await maps.delta(wanted, since) : null;
      const { revision, base, bytes } = waitingMap ?? delta ?? (await maps.whole(wanted, since));
      if (base !== null) acknowledge(request, base);
      // A client compares it with the ETag that it sent, which a proxy may have changed.
      if (base !== null) response.headers({ im: deltaManipulation, 'delta-base': named?.trim() });
      response.headers({ etag: formatETag(revision), 'cache-control': 'no-store, no-transform' });
      response.type('application/json; charset=utf-8');
      // The map cache serialized it with the schema of this status.
      if (base === null) return response.code(200).send(bytes as never);
      return response.code(226).send(addMessages(bytes, found.batch) as never);
    },
  });
}

/** True for a host that follows the map. Without a request after its wait, it may be lost. */
function mayWait({ headers }: FastifyRequest): boolean {
  return headers['if-none-match'] !== undefined && (readWait([headers.prefer].flat().join(', ')) ?? 0) > 0;
}
