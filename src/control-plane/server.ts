import { type FastifyBaseLogger, fastify, LogController } from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import type { App } from './app.ts';
import { authenticate } from './authenticate.ts';
import { closePromptly } from './closing.ts';
import { describeRoutes } from './description.ts';
import { sendError } from './error-reply.ts';
import { NotFound } from './errors.ts';
import { type Limits, limitFailures, limitRequests } from './limits.ts';
import { addEnrollmentRoute } from './routes/enrollment.ts';
import { addEnrollmentKeyRoutes } from './routes/enrollment-keys.ts';
import { addHealthRoute } from './routes/health.ts';
import { addNetworkRoutes } from './routes/networks.ts';
import { addPeerRoutes } from './routes/peers.ts';
import { addSessionRoutes } from './routes/session.ts';
import type { Context } from './service/context.ts';
import { validateRequest } from './validation.ts';

const bodyLimit = 64 * 1024;

/** Builds the HTTP server, not listening yet. The order of its hooks is the order of its defences. */
export async function createServer(context: Context, limits: Limits, logger: FastifyBaseLogger): Promise<App> {
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit,
    requestTimeout: 30_000,
    frameworkErrors: sendError,
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validateRequest);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw new NotFound('path');
  });
  readJsonOnly(app);
  closePromptly(app, context.waiters);
  setSecurityHeaders(app);
  logRequests(app);
  await limitRequests(app, limits.requests);
  authenticate(app, context);
  await describeRoutes(app);
  addHealthRoute(app);
  addSessionRoutes(app, context, limitFailures(app, limits.failedLogins, 'failed logins from this address'));
  addNetworkRoutes(app, context);
  addEnrollmentKeyRoutes(app, context);
  addEnrollmentRoute(app, context, limitFailures(app, limits.failedEnrollments, 'failed enrolments from this address'));
  addPeerRoutes(app, context);
  await app.ready();
  return app;
}

/** Takes JSON bodies and no others; an empty one is no body. */
function readJsonOnly(app: App): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body.length === 0) done(null, undefined);
    else parse(request, String(body), done);
  });
}

function setSecurityHeaders(app: App): void {
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
    });
  });
}

/** Logs each request by its route, never by its URL, headers or body: nothing in the log is a credential. */
function logRequests(app: App): void {
  app.addHook('onResponse', async (request, reply) => {
    const { caller, ip, method, routeOptions } = request;
    const who = caller?.kind === 'user' ? { user: caller.userId } : caller ? { peer: caller.peerId } : {};
    const facts = { method, route: routeOptions.url ?? null, status: reply.statusCode, address: ip, ...who };
    request.log.info({ ...facts, ms: Math.round(reply.elapsedTime) }, 'request answered');
  });
}
