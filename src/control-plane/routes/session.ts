import { LoginRequest, Profile, Session } from '../../contract/auth.ts';
import { reply } from '../../contract/reply.ts';
import { Secret } from '../../core/secret.ts';
import { type App, userOf } from '../app.ts';
import { readers } from '../caller.ts';
import type { FailureLimit } from '../limits.ts';
import type { Context } from '../service/context.ts';
import { login, logout, readProfile } from '../service/sessions.ts';
import { Nothing, nothing } from './parts.ts';

export function addSessionRoutes(app: App, context: Context, limitFailures: FailureLimit): void {
  app.route({
    method: 'POST',
    url: '/api/auth/login',
    config: { access: 'anyone' },
    schema: {
      operationId: 'login',
      summary: 'Open a session with e-mail address and password',
      body: LoginRequest,
      response: { 200: reply(Session) },
    },
    handler: async (request) => {
      const { email, password, device_name: device = '' } = request.body;
      const { token, expiresAt } = await limitFailures(request, () =>
        login(context, { email, password: new Secret(password), device, address: request.ip }),
      );
      return { data: { access_token: token.reveal(), token_type: 'Bearer' as const, expires_at: expiresAt } };
    },
  });

  app.route({
    method: 'GET',
    url: '/api/auth/me',
    config: { access: readers },
    schema: { operationId: 'readProfile', summary: 'Who the token speaks for', response: { 200: reply(Profile) } },
    handler: async (request) => ({ data: await readProfile(context, userOf(request)) }),
  });

  app.route({
    method: 'POST',
    url: '/api/auth/logout',
    config: { access: readers },
    schema: {
      operationId: 'logout',
      summary: 'Revoke the token that makes the call',
      description: 'It ends the session, or revokes the personal token, that the call came with, and no other.',
      response: { 200: Nothing },
    },
    handler: async (request) => {
      await logout(context, userOf(request));
      return nothing;
    },
  });
}
