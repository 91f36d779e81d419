import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { Refusal, reply } from '../../../contract/reply.ts';
import {
  NetworkRules,
  ReachablePairs,
  RuleDecision,
  RulesPreview,
  SelectorText,
  SetRules,
} from '../../../contract/rules.ts';
import { administrators, editors, readers } from '../../domain/caller.ts';
import { formatETag } from '../../push/to-contract.ts';
import type { Context } from '../../service/context.ts';
import { confirmRules } from '../../service/rules/confirm-rules.ts';
import { explainRules, listReach, previewRules } from '../../service/rules/explain-rules.ts';
import type { ShownRules } from '../../service/rules/ruled-network.ts';
import { type IsExpected, readNetworkRules, setRules } from '../../service/rules/set-rules.ts';
import { type App, callerOf } from '../app.ts';
import { matches } from '../conditional-requests.ts';
import { digits, NetworkPath } from './parts.ts';

/** The size of 1,000 rules with 256 selectors on each side, of common names. */
const rulesLimit = 4 * 1024 * 1024;

const expecting = z.looseObject({
  'if-match': z.string().optional().meta({ description: 'The ETag of the rules that the caller saw.' }),
});

const end = SelectorText.meta({ description: 'A selector, the name of a peer, or an address.' });
const port = digits(z.int().min(1).max(65_535))
  .optional()
  .meta({ description: 'Of tcp and udp; absent for all ports.' });
const protocol = z.enum(['tcp', 'udp', 'icmp']);
const PairQuery = z.object({ from: end, to: end, protocol: protocol.default('tcp'), port });
const ReachQuery = z.object({
  to: end.optional().meta({ description: 'The only destination: a selector, the name of a peer, or an address.' }),
  protocol: protocol.optional().meta({ description: 'tcp if port is present; absent for any.' }),
  port,
});

export function addRulesRoutes(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/api/networks/:network/rules',
    config: { access: readers },
    schema: {
      operationId: 'readRules',
      summary: 'Who may reach what in a network',
      description: [
        'The strong ETag names the last change of the rules. Selectors have the names of peers as they are now. A peer that was removed',
        'is gone:NAME, which selects nothing, also no later peer of that name.',
      ].join('\n'),
      params: NetworkPath,
      response: { 200: reply(NetworkRules), 404: Refusal },
    },
    handler: async (request, response) =>
      send(response, await readNetworkRules(context, callerOf(request), request.params.network)),
  });

  app.route({
    method: 'PUT',
    url: '/api/networks/:network/rules',
    bodyLimit: rulesLimit,
    config: { access: administrators },
    schema: {
      operationId: 'setRules',
      summary: 'Set who may reach what in a network',
      description: [
        'Replaces mode, rules and tests, as one revision of the network. A closed network without rules denies all; an open one applies',
        'none. The tests run first, as in a closed network: a 422 names each one that fails, and each rule that is not valid. With If-Match',
        'other rules than those named are a 412. Rules that are set already are no change. A host needs at most 65,536 elements of packet',
        'filters: for each rule, its senders times ports for each of its destinations on the host, and its destinations times ports for',
        'each of its senders there. With confirm_within_seconds the last confirmed rules return after that time, unless a user confirms the',
        'new ones; without it, the rules are confirmed.',
      ].join('\n'),
      params: NetworkPath,
      headers: expecting,
      body: SetRules,
      response: { 200: reply(NetworkRules), 404: Refusal, 412: Refusal, 413: Refusal },
    },
    handler: async (request, response) => {
      const { network } = request.params;
      return send(response, await setRules(context, callerOf(request), network, request.body, readExpected(request)));
    },
  });

  app.route({
    method: 'POST',
    url: '/api/networks/:network/rules/confirm',
    config: { access: administrators },
    schema: {
      operationId: 'confirmRules',
      summary: 'Keep rules that wait for a confirmation',
      description: 'Confirmed rules are no change. A 409 states that the earlier rules have returned already.',
      params: NetworkPath,
      headers: expecting,
      response: { 200: reply(NetworkRules), 404: Refusal, 409: Refusal, 412: Refusal },
    },
    handler: async (request, response) =>
      send(response, await confirmRules(context, callerOf(request), request.params.network, readExpected(request))),
  });
}

/** What rules would change, and what they decide. */
export function addRuleAnswerRoutes(app: App, context: Context): void {
  app.route({
    method: 'POST',
    url: '/api/networks/:network/rules/preview',
    bodyLimit: rulesLimit,
    config: { access: editors },
    schema: {
      operationId: 'previewRules',
      summary: 'Who would gain and lose what by rules',
      description: [
        'Changes nothing. An end that changes the same for all others is one entry with any. Probes are left out: echo requests and TCP 9',
        'between peers are always allowed.',
      ].join('\n'),
      params: NetworkPath,
      body: SetRules,
      response: { 200: reply(RulesPreview), 404: Refusal },
    },
    handler: async (request) => ({
      data: await previewRules(context, callerOf(request), request.params.network, request.body),
    }),
  });

  app.route({
    method: 'GET',
    url: '/api/networks/:network/rules/why',
    config: { access: readers },
    schema: {
      operationId: 'explainRules',
      summary: 'Whether one end may reach another, and by which rule',
      description: 'Ends with several peers are allowed if each pair of them is.',
      params: NetworkPath,
      querystring: PairQuery,
      response: { 200: reply(RuleDecision), 404: Refusal },
    },
    handler: async (request) => ({
      data: await explainRules(context, callerOf(request), request.params.network, request.query),
    }),
  });

  app.route({
    method: 'GET',
    url: '/api/networks/:network/rules/reach',
    config: { access: readers },
    schema: {
      operationId: 'listReachable',
      summary: 'Who reaches a peer or a route, or every pair',
      description:
        'Pairs of which at least a part of the connections is allowed, with the first rule that allows some.',
      params: NetworkPath,
      querystring: ReachQuery,
      response: { 200: reply(ReachablePairs), 404: Refusal },
    },
    handler: async (request) => ({
      data: await listReach(context, callerOf(request), request.params.network, request.query),
    }),
  });
}

function readExpected({ headers }: Pick<FastifyRequest, 'headers'>): IsExpected {
  const named = headers['if-match'];
  return (change) => named === undefined || matches(named, formatETag(change));
}

function send(response: FastifyReply, { change, rules }: ShownRules) {
  response.header('etag', formatETag(change));
  return { data: rules };
}
