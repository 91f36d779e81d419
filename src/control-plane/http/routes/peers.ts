import * as z from 'zod';
import { ChangePeer, ListedPeer, Peer, PeerDetails } from '../../../contract/peer.ts';
import { page, Refusal, reply } from '../../../contract/reply.ts';
import { administrators, editorsAndPeer, editorsAndWaitingPeer, readers, readersAndPeer } from '../../domain/caller.ts';
import type { Context } from '../../service/context.ts';
import { approvePeer } from '../../service/enrollment/approval.ts';
import { changePeer, checkChange, isRemoval, listPeers, readPeer, removePeer } from '../../service/peers.ts';
import { type App, callerOf } from '../app.ts';
import { PageQuery, paging, readSlice, type SendPage, toPageReply } from './paging.ts';
import { done, NetworkPath, Nothing, PeerPath } from './parts.ts';

const Which = PageQuery.extend({
  suspended: z.enum(['true', 'false']).optional(),
  owned: z.enum(['true', 'false']).optional(),
});

export function addPeerRoutes(app: App, context: Context, sendPage: SendPage): void {
  app.route({
    method: 'GET',
    url: '/api/networks/:network/peers',
    config: { access: readersAndPeer },
    schema: {
      operationId: 'listPeers',
      summary: 'The peers of a network, in pages',
      description: [
        'For people and their tools: a host reads the whole network, with its revision. People see suspended, expired and waiting peers here',
        `too, and with suspended=true them alone; the network has none of them. With owned=true people see the own devices of users alone.\n${paging}`,
      ].join('\n'),
      params: NetworkPath,
      querystring: Which,
      response: { 200: page(ListedPeer), 404: Refusal },
    },
    handler: async (request, response) => {
      const { network } = request.params;
      const caller = callerOf(request);
      const unlisted = request.query.suspended === 'true';
      const owned = request.query.owned === 'true';
      const peers = await listPeers(context, caller, network, { unlisted, owned, slice: readSlice(request.query) });
      const which = { ...(unlisted && { suspended: 'true' }), ...(owned && { owned: 'true' }) };
      const shown = toPageReply(peers, request.query, (after) => ({ ...which, after }));
      const what = `${unlisted ? 'suspended ' : ''}${owned ? 'own ' : ''}peers of ${network} for ${caller.kind}`;
      return sendPage(response, what, ListedPeer, shown);
    },
  });

  app.route({
    method: 'GET',
    url: '/api/networks/:network/peers/:peer',
    config: { access: readers },
    schema: {
      operationId: 'readPeer',
      summary: 'One peer, and the key of its enrolment',
      description: 'For people and their tools. A suspended or expired peer is here too.',
      params: PeerPath,
      response: { 200: reply(PeerDetails), 404: Refusal },
    },
    handler: async (request) => {
      const { network, peer } = request.params;
      return { data: await readPeer(context, callerOf(request), network, peer) };
    },
  });

  app.route({
    method: 'PATCH',
    url: '/api/networks/:network/peers/:peer',
    config: {
      access: editorsAndPeer,
      checkFields: (fields: ChangePeer, request) => {
        const { network, peer } = PeerPath.parse(request.params);
        return checkChange(context, callerOf(request), network, peer, fields);
      },
      isRemoval: (request) => {
        const { network, peer } = PeerPath.parse(request.params);
        return isRemoval(context, callerOf(request), network, peer, ChangePeer.parse(request.body));
      },
    },
    schema: {
      operationId: 'changePeer',
      summary: 'Change, suspend or resume a peer, or what it withdraws from service',
      description: [
        'The peer itself may not change its routes and its priority, and other changes only so often: then it gets a 429. A connector may name in withdrawn what it takes out of service for now: the routes',
        'shown for it are then those that it is to serve without these. An empty list puts all of it back. Taking out of service is',
        'never a 429, nor is suspending a peer. A name that another peer of the network has, compared as DNS labels, is a 422 that names the holder, and so is',
        'an endpoint whose address lies in a route of the network or in its range.',
        'With expected_routes the change is a 409, and nothing is changed, where the connector has other routes by now; a change that is made already is none.',
        'Owners, admins and members suspend a peer with suspended, and set its end with expires_at. A peer that is suspended or has expired',
        'keeps id, name and address. It is in no map, so that other hosts drop it, and its token gets a 403 that names the reason.',
        'A peer that waits for approval has suspended_at too, and suspended does not approve it. Where approval is required, only owners',
        'and admins change the public_key of a peer.',
      ].join('\n'),
      params: PeerPath,
      body: ChangePeer,
      response: { 200: reply(Peer), 404: Refusal, 409: Refusal },
    },
    handler: async (request) => {
      const { network, peer } = request.params;
      return { data: await changePeer(context, callerOf(request), network, peer, request.body) };
    },
  });

  app.route({
    method: 'POST',
    url: '/api/networks/:network/peers/:peer/approve',
    config: { access: administrators },
    schema: {
      operationId: 'approvePeer',
      summary: 'Approve a peer that waits',
      description: [
        'Owners and admins compare its identity_key with the one that the host states, and bring it into the network. A peer that does not',
        'wait stays as it is, so that a retry is safe. A peer that waited for 7 days is gone. One that expired is a 409.',
      ].join('\n'),
      params: PeerPath,
      response: { 200: reply(Peer), 404: Refusal, 409: Refusal },
    },
    handler: async (request) => {
      const { network, peer } = request.params;
      return { data: await approvePeer(context, callerOf(request), network, peer) };
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/networks/:network/peers/:peer',
    config: { access: editorsAndWaitingPeer },
    schema: {
      operationId: 'removePeer',
      summary: 'Take a peer out of its network',
      params: PeerPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) =>
      done(removePeer(context, callerOf(request), request.params.network, request.params.peer)),
  });
}
