import * as z from 'zod';
import { PathSignals } from '../../../contract/paths.ts';
import { Refusal } from '../../../contract/reply.ts';
import { peerOnly } from '../../domain/caller.ts';
import { Forbidden } from '../../errors.ts';
import type { DirectPaths } from '../../paths/direct-paths.ts';
import type { Context } from '../../service/context.ts';
import { type App, callerOf } from '../app.ts';
import { NetworkPath } from './parts.ts';

export function addPathRoute(app: App, { pathLimit }: Context, paths: Pick<DirectPaths, 'receive'>): void {
  app.route({
    method: 'POST',
    url: '/api/networks/:network/peers/self/paths',
    // Before the body is read, because checking it takes longer than refusing it.
    onRequest: async (request) => {
      const caller = callerOf(request);
      if (caller.kind === 'peer') pathLimit.take(caller.peerId, false);
    },
    config: { access: peerOnly },
    schema: {
      operationId: 'signalPaths',
      summary: 'State facts about direct paths to peers behind NAT',
      description: [
        'By a host, with its own token. Two hosts without an endpoint reach each other through a relay, until they have a direct path.',
        'Replies come as messages of the kinds observe, candidates, try, switch and return, to the hosts that take them. Entries for the',
        'host itself, and for peers that are not in the map, are ignored. No other host receives endpoints than the two of a pair, and the',
        'revision of the network stays as it is. 30 requests at once, and one more every second: then it is a 429.',
      ].join('\n'),
      params: NetworkPath,
      body: PathSignals,
      response: { 204: z.undefined().meta({ description: 'The facts are stored.' }), 404: Refusal },
    },
    handler: async (request, response) => {
      const caller = callerOf(request);
      if (caller.kind !== 'peer') throw new Forbidden('a peer may state paths only of itself');
      await paths.receive(caller, request.params.network, request.body);
      return response.code(204).send();
    },
  });
}
