import { ChangeNetwork, CreateNetwork, Network, NetworkSummary } from '../../../contract/network.ts';
import { page, Refusal, reply } from '../../../contract/reply.ts';
import { editors, readers } from '../../domain/caller.ts';
import type { Context } from '../../service/context.ts';
import {
  changeNetwork,
  checkChange,
  createNetwork,
  deleteNetwork,
  listNetworks,
  readNewNetwork,
} from '../../service/networks.ts';
import { type App, callerOf } from '../app.ts';
import { PageQuery, paging, readSlice, type SendPage, toPageReply } from './paging.ts';
import { done, NetworkPath, Nothing } from './parts.ts';
import { addReadNetworkRoute, type MapReads } from './read-network.ts';

interface NetworkRoutesContext extends MapReads {
  readonly sendPage: SendPage;
}

export function addNetworkRoutes(app: App, context: Context, serverContext: NetworkRoutesContext): void {
  const { sendPage } = serverContext;
  app.route({
    method: 'GET',
    url: '/api/networks',
    config: { access: readers, appliesLimit: true },
    schema: {
      operationId: 'listNetworks',
      summary: "The organization's networks, without their peers",
      description: paging,
      querystring: PageQuery,
      response: { 200: page(NetworkSummary) },
    },
    handler: async (request, response) => {
      const caller = callerOf(request);
      const networks = await listNetworks(context, caller, readSlice(request.query));
      const shown = toPageReply(networks, request.query);
      return sendPage(response, `networks of ${caller.organizationId}`, NetworkSummary, shown);
    },
  });

  app.route({
    method: 'POST',
    url: '/api/networks',
    config: { access: editors, checkFields: (fields: Partial<CreateNetwork>) => readNewNetwork(context, fields) },
    schema: {
      operationId: 'createNetwork',
      summary: 'Make a network',
      body: CreateNetwork,
      response: { 201: reply(Network) },
    },
    handler: async (request, response) => {
      const network = await createNetwork(context, callerOf(request), request.body);
      return response.code(201).send({ data: network });
    },
  });

  addReadNetworkRoute(app, context, serverContext);

  app.route({
    method: 'PATCH',
    url: '/api/networks/:network',
    config: {
      access: editors,
      checkFields: (fields: ChangeNetwork, request) =>
        checkChange(context, callerOf(request), NetworkPath.parse(request.params).network, fields),
    },
    schema: {
      operationId: 'changeNetwork',
      summary: 'Change name, description or routes of a network',
      description: [
        'routes names all of them. add_routes and remove_routes edit those that there are, in one step with what others change: use them',
        'where several people change a network. With expected_routes the change is a 409, and nothing is changed, where the network',
        'has other routes by now; a change that is made already is none.',
      ].join('\n'),
      params: NetworkPath,
      body: ChangeNetwork,
      response: { 200: reply(Network), 404: Refusal, 409: Refusal },
    },
    handler: async (request) => ({
      data: await changeNetwork(context, callerOf(request), request.params.network, request.body),
    }),
  });

  app.route({
    method: 'DELETE',
    url: '/api/networks/:network',
    config: { access: editors },
    schema: {
      operationId: 'deleteNetwork',
      summary: 'Remove a network with its keys and peers',
      params: NetworkPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => done(deleteNetwork(context, callerOf(request), request.params.network)),
  });
}
