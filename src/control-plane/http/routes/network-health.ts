import * as z from 'zod';
import { Health, Report, ReportReply } from '../../../contract/health.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { peerOnly, readersAndPeer } from '../../domain/caller.ts';
import { NotFound } from '../../errors.ts';
import { createEvaluator } from '../../health/evaluate.ts';
import { createHealthPoll, toHealth, toOwnHealth, toReply } from '../../health/health.ts';
import { storeReport } from '../../health/store-report.ts';
import type { Context } from '../../service/context.ts';
import { type App, callerOf } from '../app.ts';
import { conditionalHeaders, createConditionalRead } from '../conditional-read.ts';
import { formatETag } from '../conditional-requests.ts';
import { NetworkPath, PeerPath } from './parts.ts';

/** A report of as many paths as there may be, each with all its fields. */
const reportLimit = 128 * 1024;

export function addNetworkHealthRoutes(app: App, context: Context): void {
  const readConditionally = createConditionalRead(context, createHealthPoll(context));
  const evaluate = createEvaluator(context);

  app.route({
    method: 'GET',
    url: '/api/networks/:network/health',
    config: { access: readersAndPeer },
    schema: {
      operationId: 'readHealth',
      summary: 'The health of a network, as its hosts observe it',
      description: [
        'Which peers are in touch, and how they reach each other, from their own reports. A peer gets its own entry alone, and no routes.',
        'The ETag names a revision of its own: the revision of the network does not grow. It grows with each report and each state that',
        'changes, but not with last_seen. If-None-Match and Prefer: wait=N work as for the network; a reply comes about twice a second at most.',
      ].join('\n'),
      params: NetworkPath,
      headers: conditionalHeaders,
      response: {
        200: reply(Health),
        304: z.undefined().meta({ description: 'The revision is still the one named.' }),
        404: Refusal,
      },
    },
    handler: async (request, response) => {
      const { network } = request.params;
      const found = await readConditionally(request, response, network);
      if (found === null) return response;
      const { observation, judged } = await evaluate(network);
      const caller = callerOf(request);
      response.header('etag', formatETag(observation.revision));
      const isPeer = caller.kind === 'peer';
      return { data: isPeer ? toOwnHealth(observation, judged, caller.peerId) : toHealth(observation, judged) };
    },
  });

  app.route({
    method: 'POST',
    url: '/api/networks/:network/peers/:peer/report',
    bodyLimit: reportLimit,
    config: { access: peerOnly },
    schema: {
      operationId: 'reportHealth',
      summary: 'Report what a host observes',
      description: [
        'By the peer itself, with its own token. What it reports of peers and routes that are not in the network is ignored. The reply is how',
        'the network sees the peer. 30 reports at once, and one more every 2 seconds: then it is a 429.',
      ].join('\n'),
      params: PeerPath,
      body: Report,
      response: { 200: reply(ReportReply), 404: Refusal },
    },
    handler: async (request) => {
      const { network, peer } = request.params;
      await storeReport(context, callerOf(request), network, peer, request.body);
      const verdict = (await evaluate(network)).judged.peers.get(peer);
      if (!verdict) throw new NotFound('peer');
      return { data: toReply(verdict) };
    },
  });
}
