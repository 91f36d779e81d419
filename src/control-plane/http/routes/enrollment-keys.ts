import * as z from 'zod';
import { CreateEnrollmentKey, EnrollmentKey, NewEnrollmentKey } from '../../../contract/enrollment-key.ts';
import { page, Refusal, reply } from '../../../contract/reply.ts';
import { editors } from '../../domain/caller.ts';
import type { Context } from '../../service/context.ts';
import { checkNewKey, createKey, listKeys, revokeKey } from '../../service/enrollment/enrollment-keys.ts';
import { type App, callerOf } from '../app.ts';
import { PageQuery, paging, readSlice, type SendPage, toPageReply } from './paging.ts';
import { done, KeyPath, NetworkPath, Nothing } from './parts.ts';

const Which = PageQuery.extend({ all: z.enum(['true', 'false']).optional() });

export function addEnrollmentKeyRoutes(app: App, context: Context, sendPage: SendPage): void {
  app.route({
    method: 'POST',
    url: '/api/networks/:network/enrollment-keys',
    config: {
      access: editors,
      checkFields: (fields: Partial<CreateEnrollmentKey>, request) =>
        checkNewKey(context, callerOf(request), NetworkPath.parse(request.params).network, fields),
      // Each use changes the network, but counts for no user when it happens.
      countChanges: (request) => CreateEnrollmentKey.parse(request.body).max_uses,
    },
    schema: {
      operationId: 'createEnrollmentKey',
      summary: 'Make a key with which hosts enrol; the only time that it is shown',
      description:
        'A key counts as many changes of its user as it has uses, in the limit of changes that a user makes at once.',
      params: NetworkPath,
      body: CreateEnrollmentKey,
      response: { 201: reply(NewEnrollmentKey), 404: Refusal },
    },
    handler: async (request, response) => {
      const { key, token } = await createKey(context, callerOf(request), request.params.network, request.body);
      return response.code(201).send({ data: { ...key, enrollment_token: token.reveal() } });
    },
  });

  app.route({
    method: 'GET',
    url: '/api/networks/:network/enrollment-keys',
    config: { access: editors },
    schema: {
      operationId: 'listEnrollmentKeys',
      summary: 'The keys of a network with which hosts can still enrol',
      description: `With all=true also those that are used up or have expired. Keys that were revoked are in no list.\n${paging}`,
      params: NetworkPath,
      querystring: Which,
      response: { 200: page(EnrollmentKey), 404: Refusal },
    },
    handler: async (request, response) => {
      const { network } = request.params;
      const all = request.query.all === 'true';
      const keys = await listKeys(context, callerOf(request), network, { all, slice: readSlice(request.query) });
      const shown = toPageReply(keys, request.query, (after) => ({ ...(all && { all: 'true' }), after }));
      return sendPage(response, `${all ? 'all ' : ''}keys of ${network}`, EnrollmentKey, shown);
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/networks/:network/enrollment-keys/:key',
    config: { access: editors },
    schema: {
      operationId: 'revokeEnrollmentKey',
      summary: 'Revoke a key',
      params: KeyPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => done(revokeKey(context, callerOf(request), request.params.network, request.params.key)),
  });
}
