import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { CookieSession } from '../../../../contract/auth.ts';
import { Refusal, reply } from '../../../../contract/reply.ts';
import {
  BeginSingleSignOn,
  EndSingleSignOn,
  LoginMethods,
  LogoutToken,
  SingleSignOn,
} from '../../../../contract/single-sign-on.ts';
import { IssuerRefused } from '../../../errors.ts';
import { logOutByIssuer } from '../../../service/accounts/issuer-logout.ts';
import {
  attemptMs,
  beginLogin,
  finishLogin,
  redeemLogin,
  requireSingleSignOn,
} from '../../../service/accounts/single-sign-on.ts';
import type { Context } from '../../../service/context.ts';
import type { App } from '../../app.ts';
import {
  isHostOf,
  readLoginCookies,
  requirePublicHost,
  requireSameOrigin,
  setLoginCookie,
} from '../../session-cookie.ts';
import { replyWithSession } from '../../session-reply.ts';
import { Nothing } from '../parts.ts';

const path = '/api/auth/single-sign-on';

export function addSingleSignOnRoutes(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/api/auth/methods',
    config: { access: 'anyone' },
    schema: {
      operationId: 'readLoginMethods',
      summary: 'How users log in here',
      response: { 200: reply(LoginMethods) },
    },
    handler: async () => {
      const issuer = context.singleSignOn?.settings.issuer.href;
      return { data: { password: context.allowsPasswords, single_sign_on: issuer === undefined ? null : { issuer } } };
    },
  });

  app.route({
    method: 'POST',
    url: path,
    config: { access: 'anyone' },
    schema: {
      operationId: 'beginSingleSignOn',
      summary: 'Begin a login at the issuer, from a page of this origin',
      body: BeginSingleSignOn,
      response: { 200: reply(SingleSignOn), 403: Refusal },
    },
    handler: async (request, response) => {
      requireSingleSignOn(context);
      requirePublicHost(request, context.publicUrls);
      requireSameOrigin(request);
      const { url, browser } = await beginLogin(
        context,
        callbackFor(request.host, context),
        request.ip,
        readLoginCookies(request)[0],
      );
      const expiresAt = new Date(context.now().getTime() + attemptMs);
      setLoginCookie(request, response, request.body.session_cookie, { cookie: browser, expiresAt });
      return { data: { authorization_url: url.href } };
    },
  });

  app.route({
    method: 'POST',
    url: `${path}/session`,
    config: { access: 'anyone' },
    schema: {
      operationId: 'endSingleSignOn',
      summary: 'Open the session of a login that the issuer confirmed in this browser',
      description: 'Once for each login, within 10 minutes of its begin.',
      body: EndSingleSignOn,
      response: { 200: reply(CookieSession), 403: Refusal },
    },
    handler: async (request, response) => {
      requirePublicHost(request, context.publicUrls);
      requireSameOrigin(request);
      const { session_cookie: page, device_name: name = 'console' } = request.body;
      const opened = await redeemLogin(context, readLoginCookies(request), {
        ...{ name: name.slice(0, 255).replaceAll('\0', ''), address: request.ip },
      });
      const { data } = await replyWithSession(context, request, response, page, opened);
      if (!('session_key' in data)) throw new Error('a page got a bearer token');
      return { data };
    },
  });

  app.register(async (plain) => {
    const scope = plain.withTypeProvider<ZodTypeProvider>();
    scope.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
      done(null, Object.fromEntries(new URLSearchParams(String(body)))),
    );
    scope.route({
      method: 'POST',
      url: `${path}/logout`,
      config: { access: 'anyone' },
      schema: {
        operationId: 'logOutByIssuer',
        summary: 'Where the issuer sends logout tokens (OpenID Connect Back-Channel Logout 1.0)',
        consumes: ['application/x-www-form-urlencoded'],
        body: LogoutToken,
        response: { 200: Nothing, 400: Refusal },
      },
      handler: async (request, response) => {
        requireSingleSignOn(context);
        try {
          await logOutByIssuer(context, request.body.logout_token, request.ip);
        } catch (error) {
          if (!(error instanceof IssuerRefused)) throw error;
          return response.code(400).send({ message: error.message });
        }
        return { data: null };
      },
    });
  });
}

/**
 * Where the issuer sends browsers. Nothing in this URL opens a session: the console redeems the
 * login. Not part of the API: add it before the API's hooks.
 */
export function serveCallback(app: App, context: Context): void {
  app.get(`${path}/callback`, async (request, response) => {
    const query = request.url.split('?').slice(1).join('?');
    if (context.singleSignOn !== null) {
      await finishLogin(context, query, readLoginCookies(request), request.ip);
    }
    // Relative, because a proxy may serve the console below a path.
    return response.code(303).header('location', '../../../#/single-sign-on').send();
  });
}

/** The URL of the callback at the public URL that the browser uses. */
function callbackFor(host: string, { publicUrls }: Context): string {
  const base = publicUrls.find((url) => isHostOf(host, url)) ?? publicUrls[0];
  if (base === undefined) throw new Error('single sign-on without a public URL');
  const folder = base.pathname.endsWith('/') ? base : new URL(`${base.pathname}/`, base);
  return new URL(`.${path}/callback`, folder).href;
}
