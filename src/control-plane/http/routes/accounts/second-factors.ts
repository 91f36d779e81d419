import type * as z from 'zod';
import { CookieSession } from '../../../../contract/auth.ts';
import { Refusal, reply } from '../../../../contract/reply.ts';
import {
  AddedFactor,
  AddFactor,
  BeginFactor,
  FactorChallenge,
  FactorsRemoved,
  RecoveryCodes,
  SecondFactorLogin,
  SecondFactors,
} from '../../../../contract/second-factor.ts';
import { Secret } from '../../../../core/crypto/secret.ts';
import { administratorsInSession, readersInSession } from '../../../domain/caller.ts';
import { hashToken } from '../../../domain/tokens.ts';
import { InvalidRequest } from '../../../errors.ts';
import {
  addFactor,
  beginFactor,
  createRecoveryCodes,
  readSecondFactors,
  removeFactor,
  resetFactors,
} from '../../../service/accounts/second-factors.ts';
import { passSecondFactor, type SecondFactorProof } from '../../../service/accounts/second-step.ts';
import type { Context } from '../../../service/context.ts';
import { type App, userOf } from '../../app.ts';
import type { FailureLimit } from '../../limits.ts';
import { readPageSite } from '../../passkey-site.ts';
import { requirePublicHost, requireSameOrigin } from '../../session-cookie.ts';
import { replyWithCookie } from '../../session-reply.ts';
import { done, FactorPath, Nothing, UserPath } from '../parts.ts';

const recent = 'Needs a session whose login is at most 5 minutes ago, which no password replaces.';

export function addSecondFactorRoutes(app: App, context: Context, limitFailures: FailureLimit): void {
  app.route({
    method: 'POST',
    url: '/api/auth/login/second-factor',
    config: { access: 'anyone' },
    schema: {
      operationId: 'loginWithSecondFactor',
      summary: 'Open the session of a page, with its challenge and a second factor',
      description:
        'A challenge is valid for 5 minutes and 5 attempts. A code and a recovery code are accepted once. After 10 wrong codes of a user in an ' +
        'hour, codes of its apps get a 429; passkeys and recovery codes do not.',
      body: SecondFactorLogin,
      response: { 200: reply(CookieSession) },
    },
    handler: async (request, response) => {
      const { challenge, session_cookie: path } = request.body;
      requirePublicHost(request, context.publicUrls);
      requireSameOrigin(request);
      const step = { challenge: new Secret(challenge), proof: readProof(request.body), address: request.ip };
      const opened = await limitFailures(request, hashToken(step.challenge), () => passSecondFactor(context, step));
      return replyWithCookie(context, request, response, path, opened);
    },
  });

  app.route({
    method: 'GET',
    url: '/api/auth/factors',
    config: { access: readersInSession },
    schema: {
      operationId: 'listFactors',
      summary: "The caller's second factors, without their secrets",
      response: { 200: reply(SecondFactors) },
    },
    handler: async (request) => ({
      data: await readSecondFactors(context, userOf(request), readPageSite(request, context.publicUrls)),
    }),
  });

  app.route({
    method: 'POST',
    url: '/api/auth/factors/challenges',
    config: { access: readersInSession },
    schema: {
      operationId: 'beginFactor',
      summary: 'Begin to add a second factor',
      description:
        'Requires the password of the caller if the login of that session is more than 5 minutes ago; for a user with a second factor, a recent login. ' +
        'The challenge is valid for 5 minutes, in this session.',
      body: BeginFactor,
      response: { 201: reply(FactorChallenge) },
    },
    handler: async (request, response) => {
      const site = readPageSite(request, context.publicUrls);
      const begin = () => beginFactor(context, userOf(request), request.body, site);
      const isGuess = request.body.password !== undefined;
      return response.code(201).send({ data: await (isGuess ? limitFailures(request, 'password', begin) : begin()) });
    },
  });

  app.route({
    method: 'POST',
    url: '/api/auth/factors',
    config: { access: readersInSession },
    schema: {
      operationId: 'addFactor',
      summary: 'Add a second factor, with its challenge and a code or a passkey',
      description:
        'With the first factor, the reply has recovery codes, and the other sessions of the caller end. Its personal tokens stay.',
      body: AddFactor,
      response: { 201: reply(AddedFactor) },
    },
    handler: async (request, response) => {
      const add = () => addFactor(context, userOf(request), request.body);
      return response.code(201).send({ data: await limitFailures(request, 'second factor', add) });
    },
  });

  app.route({
    method: 'DELETE',
    url: '/api/auth/factors/:id',
    config: { access: readersInSession },
    schema: {
      operationId: 'removeFactor',
      summary: 'Remove a second factor of the caller',
      description: `${recent} With the last factor go the recovery codes.`,
      params: FactorPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => done(removeFactor(context, userOf(request), request.params.id)),
  });

  app.route({
    method: 'POST',
    url: '/api/auth/factors/recovery-codes',
    config: { access: readersInSession },
    schema: {
      operationId: 'createRecoveryCodes',
      summary: 'Replace the recovery codes of the caller',
      description: recent,
      response: { 201: reply(RecoveryCodes) },
    },
    handler: async (request, response) =>
      response.code(201).send({ data: await createRecoveryCodes(context, userOf(request)) }),
  });

  app.route({
    method: 'DELETE',
    url: '/api/users/:user/factors',
    config: { access: administratorsInSession },
    schema: {
      operationId: 'resetFactors',
      summary: 'Remove the second factors and recovery codes of another user',
      description: `Only an owner may do so for an owner. ${recent}`,
      params: UserPath,
      response: { 200: reply(FactorsRemoved), 404: Refusal },
    },
    handler: async (request) => ({ data: await resetFactors(context, userOf(request), request.params.user) }),
  });
}

function readProof({ code, recovery_code, passkey }: z.infer<typeof SecondFactorLogin>): SecondFactorProof {
  const proofs: SecondFactorProof[] = [
    ...(code === undefined ? [] : [{ kind: 'totp', code } as const]),
    ...(recovery_code === undefined ? [] : [{ kind: 'recovery_code', code: recovery_code } as const]),
    ...(passkey === undefined ? [] : [{ kind: 'passkey', assertion: passkey } as const]),
  ];
  const [proof, ...others] = proofs;
  if (proof === undefined || others.length > 0)
    throw new InvalidRequest({ code: ['must be given, or recovery_code or passkey in its place'] });
  return proof;
}
