import * as z from 'zod';
import { Health, HealthSummary, Report, ReportReply } from '../../../contract/health.ts';
import { page, Refusal, reply } from '../../../contract/reply.ts';
import { NetworkTraffic, PeerTraffic } from '../../../contract/traffic.ts';
import { administrators, peerOnly, readers, readersAndPeer, type UserCaller } from '../../domain/caller.ts';
import type { Evaluator } from '../../health/evaluate.ts';
import { createHealthPoll, serializeHealth, toOwnHealth, toReply } from '../../health/health.ts';
import type { LostConnections } from '../../health/lost-connections.ts';
import { readNetworkTraffic, readPeerTraffic } from '../../health/read-traffic.ts';
import { storeReport } from '../../health/store-report.ts';
import { summarizeNetworks } from '../../health/summarize.ts';
import { formatETag } from '../../push/to-contract.ts';
import type { Context } from '../../service/context.ts';
import { type App, callerOf } from '../app.ts';
import { conditionalHeaders, createConditionalRead } from '../conditional-read.ts';
import { PageQuery, paging, readSlice, toPageReply } from './paging.ts';
import { NetworkPath, PeerPath } from './parts.ts';

/** The size of a report with the maximum number of paths and all fields. */
const reportLimit = 128 * 1024;

const unkept = ' Nothing is kept where the control plane keeps no presence.';

const readerOf = ({ role }: UserCaller) => (administrators.roles.includes(role) ? 'administrator' : 'other');

export function addNetworkHealthRoutes(
  app: App,
  context: Context,
  evaluator: Evaluator,
  losses: Pick<LostConnections, 'isAwaited'>,
): void {
  const readConditionally = createConditionalRead(context, createHealthPoll(context));

  app.route({
    method: 'GET',
    url: '/api/networks/:network/health',
    config: { access: readersAndPeer },
    schema: {
      operationId: 'readHealth',
      summary: 'The health of a network, as its hosts observe it',
      description: [
        'Which peers are in touch, and how they reach each other, from their own reports. A peer gets its own entry alone, and no routes.',
        'Owners and admins also get the endpoints that hosts tried for direct paths.',
        'The ETag names a revision of its own: the revision of the network does not grow. It grows with each report and each state that',
        'changes, but not with last_seen. If-None-Match and Prefer: wait=N work as for the network; a reply comes about twice a second at most.',
      ].join('\n'),
      params: NetworkPath,
      headers: conditionalHeaders,
      response: {
        200: reply(Health),
        304: z.undefined().meta({ description: 'The revision is unchanged.' }),
        404: Refusal,
      },
    },
    handler: async (request, response) => {
      const { network } = request.params;
      const found = await readConditionally(request, response, network);
      if (found === null) return response;
      const evaluation = await evaluator.read(network);
      const caller = callerOf(request);
      response.header('etag', formatETag(evaluation.observation.revision));
      if (caller.kind === 'peer') return { data: toOwnHealth(evaluation, caller.peerId) };
      return response
        .type('application/json; charset=utf-8')
        .send(serializeHealth(evaluation, readerOf(caller)) as never);
    },
  });

  app.route({
    method: 'GET',
    url: '/api/health',
    config: { access: readers, appliesLimit: true },
    schema: {
      operationId: 'summarizeHealth',
      summary: 'What is down in each network of the organization',
      description: `How many peers and routes are in each state, up to ten seconds old. The health of a network has the reasons.\n${paging}`,
      querystring: PageQuery,
      response: { 200: page(HealthSummary) },
    },
    handler: async (request) => {
      const summaries = await summarizeNetworks(context, evaluator, callerOf(request), readSlice(request.query));
      return toPageReply(summaries, request.query);
    },
  });

  app.route({
    method: 'GET',
    url: '/api/networks/:network/traffic',
    config: { access: readers },
    schema: {
      operationId: 'readTraffic',
      summary: 'What the hosts of a network received and sent in the last 24 hours',
      description: `By their reports: each rate is the mean of half an hour.${unkept}`,
      params: NetworkPath,
      response: { 200: reply(NetworkTraffic), 404: Refusal },
    },
    handler: async (request) => ({
      data: await readNetworkTraffic(context, callerOf(request), request.params.network),
    }),
  });

  app.route({
    method: 'GET',
    url: '/api/networks/:network/peers/:peer/traffic',
    config: { access: readers },
    schema: {
      operationId: 'readPeerTraffic',
      summary: 'What a peer received and sent in the last 24 hours',
      description: `By its own reports: each rate is the mean of half an hour.${unkept}`,
      params: PeerPath,
      response: { 200: reply(PeerTraffic), 404: Refusal },
    },
    handler: async (request) => {
      const { network, peer } = request.params;
      return { data: await readPeerTraffic(context, callerOf(request), network, peer) };
    },
  });

  app.route({
    method: 'POST',
    url: '/api/networks/:network/peers/:peer/report',
    bodyLimit: reportLimit,
    // Before the body is read, because checking a report takes longer than refusing it.
    onRequest: async (request) => {
      const caller = callerOf(request);
      if (caller.kind === 'peer') context.reportLimit.take(caller.peerId, false);
    },
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
      const { probes = [] } = request.body;
      if (await storeReport(context, callerOf(request), network, peer, request.body))
        evaluator.schedule(network, losses.isAwaited(probes.map((probe) => probe.peer)));
      return { data: toReply(await evaluator.verdictOf(network, peer)) };
    },
  });
}
