import { CreatePersonalToken, NewPersonalToken, PersonalToken } from '../../../../contract/personal-token.ts';
import { page, Refusal, reply } from '../../../../contract/reply.ts';
import { readers, readersInSession } from '../../../domain/caller.ts';
import { createToken, listTokens, revokeToken } from '../../../service/accounts/personal-tokens.ts';
import type { Context } from '../../../service/context.ts';
import { type App, userOf } from '../../app.ts';
import type { FailureLimit } from '../../limits.ts';
import { PageQuery, paging, readSlice, toPageReply } from '../paging.ts';
import { done, Nothing, TokenPath } from '../parts.ts';

export function addPersonalTokenRoutes(app: App, context: Context, limitFailures: FailureLimit): void {
  app.route({
    method: 'GET',
    url: '/api/auth/tokens',
    config: { access: readers },
    schema: {
      operationId: 'listPersonalTokens',
      summary: "The caller's personal tokens, without their values",
      description: paging,
      querystring: PageQuery,
      response: { 200: page(PersonalToken) },
    },
    handler: async (request) =>
      toPageReply(await listTokens(context, userOf(request), readSlice(request.query)), request.query),
  });

  app.route({
    method: 'POST',
    url: '/api/auth/tokens',
    config: { access: readersInSession },
    schema: {
      operationId: 'createPersonalToken',
      summary: 'Make a personal token; the only time that its value is shown',
      description:
        'A personal token is a bearer with the role that its user has at the time of each request. It takes a session to make one, and ' +
        'the password where the login of that session is more than 5 minutes ago: neither a token nor a stolen session makes one that ' +
        'outlives it. A wrong password is a 403. After as many as there may be failed logins in a minute, this session gets a 429.',
      body: CreatePersonalToken,
      response: { 201: reply(NewPersonalToken) },
    },
    handler: async (request, response) => {
      const create = () => createToken(context, userOf(request), request.body);
      const isGuess = request.body.password !== undefined;
      const { token, value } = await (isGuess ? limitFailures(request, 'password', create) : create());
      return response.code(201).send({ data: { ...token, access_token: value.reveal() } });
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/auth/tokens/:id',
    config: { access: readers },
    schema: {
      operationId: 'revokePersonalToken',
      summary: 'Revoke a personal token of the caller',
      params: TokenPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => done(revokeToken(context, userOf(request), request.params.id)),
  });
}
