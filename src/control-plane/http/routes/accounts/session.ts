import * as z from 'zod';
import {
  CookieSession,
  LoginRequest,
  LogoutRequest,
  OpenSession,
  Profile,
  Session,
} from '../../../../contract/auth.ts';
import { Refusal, reply } from '../../../../contract/reply.ts';
import { LoginChallenge } from '../../../../contract/second-factor.ts';
import { ChangePassword, PasswordChange } from '../../../../contract/user.ts';
import { Secret } from '../../../../core/crypto/secret.ts';
import { readers, readersInSession } from '../../../domain/caller.ts';
import { splitToken } from '../../../domain/tokens.ts';
import { listSessions, login, logout, readProfile, revokeSession } from '../../../service/accounts/sessions.ts';
import { changePassword } from '../../../service/accounts/users.ts';
import type { Context } from '../../../service/context.ts';
import { type App, isDirect, userOf } from '../../app.ts';
import type { FailureLimit } from '../../limits.ts';
import { readPageSite } from '../../passkey-site.ts';
import { clearSessionCookie, requirePublicHost, requireSameOrigin, setSessionCookie } from '../../session-cookie.ts';
import { replyWithSession } from '../../session-reply.ts';
import { done, Nothing, SessionPath, sessionTimes } from '../parts.ts';

export function addSessionRoutes(app: App, context: Context, limitFailures: FailureLimit): void {
  app.route({
    method: 'POST',
    url: '/api/auth/login',
    config: { access: 'anyone' },
    schema: {
      operationId: 'login',
      summary: 'Open a session with e-mail address and password',
      body: LoginRequest,
      description:
        'A page of a user with a second factor receives a challenge in place of a session. Without session_cookie, such a user is refused with ' +
        'a 403: use a personal token.',
      response: { 200: z.union([reply(Session), reply(CookieSession), reply(LoginChallenge)]) },
    },
    handler: async (request, response) => {
      const { email, password, device_name: device = '', session_cookie: path } = request.body;
      const isSplit = path !== undefined;
      if (isSplit) requirePublicHost(request, context.publicUrls);
      if (isSplit) requireSameOrigin(request);
      const opened = await limitFailures(request, email.toLowerCase(), () =>
        login(context, {
          ...{
            email,
            password: new Secret(password),
            device,
            address: request.ip,
            isDirect: isDirect(request),
            isSplit,
          },
          site: readPageSite(request, context.publicUrls).passkeys,
        }),
      );
      if ('second_factor' in opened) return { data: opened };
      return replyWithSession(context, request, response, path, opened);
    },
  });

  app.route({
    method: 'GET',
    url: '/api/auth/me',
    config: { access: readers, appliesLimit: true },
    schema: {
      operationId: 'readProfile',
      summary: 'The user or the peer of the token',
      response: { 200: reply(Profile) },
    },
    handler: async (request) => ({ data: await readProfile(context, userOf(request)) }),
  });

  app.route({
    method: 'POST',
    url: '/api/auth/logout',
    config: { access: readers, appliesLimit: true },
    schema: {
      operationId: 'logout',
      summary: 'Revoke the token that makes the call',
      description: 'It ends the session, or revokes the personal token, that the call came with, and no other.',
      body: LogoutRequest.optional(),
      response: { 200: Nothing },
    },
    handler: async (request, response) => {
      const path = request.body?.session_cookie;
      await logout(context, userOf(request));
      if (path !== undefined) clearSessionCookie(request, response, path);
      return { data: null };
    },
  });

  app.route({
    method: 'GET',
    url: '/api/auth/sessions',
    config: { access: readers },
    schema: {
      operationId: 'listSessions',
      summary: "The caller's sessions, without their tokens",
      description: sessionTimes,
      response: { 200: reply(z.array(OpenSession)) },
    },
    handler: async (request) => ({ data: await listSessions(context, userOf(request)) }),
  });

  app.route({
    method: 'DELETE',
    url: '/api/auth/sessions/:id',
    config: { access: readers },
    schema: {
      operationId: 'revokeSession',
      summary: 'End a session of the caller',
      params: SessionPath,
      response: { 200: Nothing, 404: Refusal },
    },
    handler: async (request) => done(revokeSession(context, userOf(request), request.params.id)),
  });

  app.route({
    method: 'PUT',
    url: '/api/auth/password',
    config: { access: readersInSession },
    schema: {
      operationId: 'changePassword',
      summary: "Change the caller's own password",
      description:
        'All sessions of the caller end, and its personal tokens are revoked unless `keep_tokens` is set. The reply has a session in place of ' +
        'that of the call, in the same form: a bearer, or with `session_cookie` a cookie and its key. A wrong current password is a 403. ' +
        'After as many as there may be failed logins in a minute, this session gets a 429.',
      body: ChangePassword,
      response: { 200: reply(PasswordChange) },
    },
    handler: async (request, response) => {
      const { current_password, new_password, keep_tokens: keepsTokens = false, session_cookie: path } = request.body;
      const isBearer = request.headers.authorization !== undefined;
      // A page of an earlier version gives no path, and logs in again.
      const session = isBearer ? 'bearer' : path === undefined ? null : 'split';
      const fields = {
        current: new Secret(current_password),
        next: new Secret(new_password),
        keepsTokens,
        session,
      } as const;
      const { change, opened } = await limitFailures(request, 'password', () =>
        changePassword(context, userOf(request), fields),
      );
      if (opened === null) return { data: change };
      const { token, expiresAt: expires_at } = opened;
      if (isBearer || path === undefined) return { data: { ...change, access_token: token.reveal(), expires_at } };
      const { cookie, key } = splitToken(token);
      setSessionCookie(request, response, path, { cookie, expiresAt: new Date(expires_at) });
      return { data: { ...change, session_key: key.reveal(), expires_at } };
    },
  });
}
