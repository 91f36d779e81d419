import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { type FastifyBaseLogger, type FastifyRequest, fastify, LogController } from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { covers, type Prefix, tryParseAddress } from '../../core/net/cidr.ts';
import { InvalidRequest, MethodNotAllowed, NotFound, UnsupportedEncoding } from '../errors.ts';
import type { Acknowledgements } from '../health/acknowledgements.ts';
import type { Evaluator } from '../health/evaluate.ts';
import type { LostConnections } from '../health/lost-connections.ts';
import type { Presence } from '../health/presence.ts';
import type { DirectPaths } from '../paths/direct-paths.ts';
import { createMapCache } from '../push/map-cache.ts';
import type { PeerMessages } from '../push/peer-messages.ts';
import type { Context } from '../service/context.ts';
import type { App } from './app.ts';
import { authenticate } from './authenticate.ts';
import { serveConsole, serveGreeting } from './console.ts';
import { describeRoutes, prepareDescription, serveDescriptionPage } from './description/describe-routes.ts';
import { sendError } from './error-reply.ts';
import { type Limits, limitFailures, limitRequests, limitUnreadReplies, limitUserChanges } from './limits.ts';
import type { ServerMetrics } from './metrics.ts';
import { addDeviceCodeRoutes, isUnknownCode } from './routes/accounts/device-codes.ts';
import { addPersonalTokenRoutes } from './routes/accounts/personal-tokens.ts';
import { addSecondFactorRoutes } from './routes/accounts/second-factors.ts';
import { addSessionRoutes } from './routes/accounts/session.ts';
import { addSingleSignOnRoutes, serveCallback } from './routes/accounts/single-sign-on.ts';
import { addUserRoutes } from './routes/accounts/users.ts';
import { addAuditRoutes } from './routes/audit.ts';
import { addEnrollmentRoute } from './routes/enrollment.ts';
import { addEnrollmentKeyRoutes } from './routes/enrollment-keys.ts';
import { addEventRoute } from './routes/events.ts';
import { addHealthRoutes } from './routes/health.ts';
import { addMetricsRoute } from './routes/metrics.ts';
import { addNetworkHealthRoutes } from './routes/network-health.ts';
import { addNetworkRoutes } from './routes/networks.ts';
import { addOwnDeviceRoutes } from './routes/own-devices.ts';
import { createPageSender } from './routes/paging.ts';
import { addPathRoute } from './routes/paths.ts';
import { addPeerRoutes } from './routes/peers.ts';
import { addRemovalsRoute } from './routes/removals.ts';
import { addRuleAnswerRoutes, addRulesRoutes } from './routes/rules.ts';
import { closePromptly, createClientErrorHandler, type Transport } from './transport.ts';
import { nameAllFields, validateRequest } from './validation.ts';

const bodyLimit = 64 * 1024;

export interface ServerContext {
  readonly transport: Transport;
  readonly limits: Limits;
  /** The proxies whose X-Forwarded-For is trusted. */
  readonly proxies: readonly Prefix[];
  readonly metrics: ServerMetrics;
  readonly presence: Presence;
  readonly acknowledgements: Acknowledgements;
  readonly losses: LostConnections;
  readonly messages: PeerMessages;
  readonly paths: DirectPaths;
  readonly evaluator: Evaluator;
  /** True if the metrics have a separate address. */
  readonly metricsElsewhere: boolean;
  /** The folder of the console; null for none. */
  readonly console: string | null;
  readonly logger: FastifyBaseLogger;
}

/** Builds the HTTP server without listening. Its hooks run in the order of its defences. */
export async function createServer(context: Context, serverContext: ServerContext): Promise<App> {
  const { transport, limits, proxies, metrics, logger } = serverContext;
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit,
    serverFactory: (handler) =>
      transport.serverFactory((request, response) => {
        if (proxies.length > 0) readForwarded(request);
        handler(request, response);
      }),
    trustProxy: proxies.length > 0 && [...proxies],
    clientErrorHandler: createClientErrorHandler(metrics.countNoRequest),
    // Closing has its own deadline, and Fastify's timeout per hook would be shorter.
    pluginTimeout: 0,
    return503OnClosing: false,
    frameworkErrors: sendError,
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validateRequest);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(async (error, request, reply) => {
    metrics.countFailure(error);
    return sendError(await nameAllFields(error, request), request, reply);
  });
  readJsonOnly(app);
  setSecurityHeaders(app);
  closePromptly(app, [context.notifier, context.healthNotifier], transport);
  app.addHook('onResponse', async (request, reply) => metrics.countAnswer(request, reply));
  logRequests(app);
  unmapAddresses(app);
  requireAddress(app);
  warnOfProxy(app, proxies);
  await limitRequests(app, limits.requests, context.steadyNow);
  const methodsOf = refuseOtherMethods(app);
  app.setNotFoundHandler((request, reply) => {
    const methods = methodsOf(request);
    if (methods.length === 0) throw new NotFound('path');
    return reply.code(204).header('allow', methods.join(', ')).send();
  });
  if (serverContext.console === null) serveGreeting(app);
  else serveConsole(app, serverContext.console, context.publicUrls);
  const describe = prepareDescription(app);
  serveDescriptionPage(app, describe);
  serveCallback(app, context);
  authenticate(app, context, serverContext.presence, serverContext.losses);
  limitUserChanges(app, limits.userChanges, context.steadyNow);
  limitUnreadReplies(app, limits.unreadBytes);
  await describeRoutes(app, describe);
  addHealthRoutes(app, context);
  const behindProxy = proxies.length > 0 ? 'behind a proxy' : null;
  addMetricsRoute(app, metrics, serverContext.metricsElsewhere ? 'own address' : behindProxy);
  const limitLogins = limitFailures(app, { max: limits.failedLogins, mostWaiting: 16, what: 'logins' });
  addSessionRoutes(app, context, limitLogins);
  const guesses = { max: limits.failedLogins, mostWaiting: 16, what: 'device codes', isFailure: isUnknownCode };
  addDeviceCodeRoutes(app, context, serverContext.console !== null, {
    ...{ limitLogins, limitGuesses: limitFailures(app, guesses) },
  });
  addSingleSignOnRoutes(app, context);
  addSecondFactorRoutes(app, context, limitLogins);
  const maps = createMapCache(context.db);
  const sendPage = createPageSender();
  addNetworkRoutes(app, context, { ...serverContext, maps, sendPage });
  addRulesRoutes(app, context);
  addRuleAnswerRoutes(app, context);
  addRemovalsRoute(app, context);
  addNetworkHealthRoutes(app, context, serverContext.evaluator, serverContext.losses);
  addEnrollmentKeyRoutes(app, context, sendPage);
  addEnrollmentRoute(
    app,
    context,
    maps,
    // A fleet behind one address enrols all at once.
    limitFailures(app, { max: limits.failedEnrollments, mostWaiting: 512, what: 'enrolments' }),
  );
  addPeerRoutes(app, context, sendPage);
  addPathRoute(app, context, serverContext.paths);
  addUserRoutes(app, context, sendPage, limitLogins);
  addPersonalTokenRoutes(app, context, limitLogins);
  addOwnDeviceRoutes(app, context, limitLogins);
  addAuditRoutes(app, context);
  addEventRoute(app, context);
  await app.ready();
  return app;
}

/** Accepts only JSON bodies. An empty body counts as none. */
function readJsonOnly(app: App): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body.length === 0) done(null, undefined);
    else parse(request, String(body), done);
  });
  app.addHook('preParsing', async ({ headers }) => {
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') throw new UnsupportedEncoding(encoding);
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

/** Logs the route, never the URL, headers or body: the log must not contain credentials. */
function logRequests(app: App): void {
  app.addHook('onResponse', async (request, reply) => {
    const { caller, ip, method, routeOptions } = request;
    const who = caller?.kind === 'user' ? { user: caller.userId } : caller ? { peer: caller.peerId } : {};
    const facts = { method, route: routeOptions.url ?? null, status: reply.statusCode, address: ip, ...who };
    const level = routeOptions.config.isHealthCheck ? 'debug' : 'info';
    request.log[level]({ ...facts, ms: Math.round(reply.elapsedTime) }, 'request answered');
  });
}

/** The methods of a request's path, in the form of an Allow header; empty for an unknown path. */
type MethodsOf = (request: Pick<FastifyRequest, 'url'>) => readonly string[];

/** Refuses methods that a request's path does not support. Covers routes added after this call. */
function refuseOtherMethods(app: App): MethodsOf {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? new Set();
    methods.set(
      url,
      [method].flat().reduce((all, each) => all.add(each), known),
    );
  });
  const list = (template: string | undefined) =>
    template === undefined ? [] : [...(methods.get(template) ?? []), 'OPTIONS'].sort();
  const findTemplate = (path: string) =>
    methods.has(path) ? path : [...methods.keys()].find((each) => isOf(path, each));
  app.addHook('onRequest', async (request) => {
    const path = pathOf(request);
    // A fixed path may match another route's parameter: /api/networks/enroll is no network.
    const allowed = request.is404 ? list(findTemplate(path)) : methods.has(path) ? list(path) : [];
    if (allowed.length > 0 && !allowed.includes(request.method)) throw new MethodNotAllowed(request.method, allowed);
  });
  return (request) => list(findTemplate(pathOf(request)));
}

function pathOf({ url }: Pick<FastifyRequest, 'url'>): string {
  return url.split('?', 1)[0] ?? url;
}

/** True if the path has the segments of the template, with any value for its parameters. */
function isOf(path: string, template: string): boolean {
  const [given, wanted] = [path.split('/'), template.split('/')];
  return (
    given.length === wanted.length && wanted.every((segment, index) => segment[0] === ':' || segment === given[index])
  );
}

/** Restores IPv4 addresses, which a listener of both families writes as ::ffff:203.0.113.7. */
function unmapAddresses(app: App): void {
  app.addHook('onRequest', async (request) => {
    const [, ipv4] = /^::ffff:([0-9.]+)$/i.exec(request.ip) ?? [];
    if (ipv4 !== undefined) Object.defineProperty(request, 'ip', { value: ipv4 });
  });
}

/** Without a client address from the proxy, limits and audit log would use unverified text. */
function requireAddress(app: App): void {
  app.addHook('onRequest', async ({ ip }) => {
    if (isIP(ip) === 0) throw new InvalidRequest({ 'x-forwarded-for': ['must end in the IP address of the client'] });
  });
}

/** Logs the first untrusted address that sends proxy headers, but not their content. */
function warnOfProxy(app: App, proxies: readonly Prefix[]): void {
  let isWarned = false;
  app.addHook('onRequest', async ({ headers, socket, log }) => {
    if (isWarned || !(headers['x-forwarded-for'] ?? headers['x-forwarded-proto'])) return;
    const address = tryParseAddress(socket.remoteAddress?.replace(/^::ffff:/, '') ?? '');
    if (address === null || proxies.some((each) => covers(each, address))) return;
    isWarned = true;
    log.warn({ address }, 'X-Forwarded headers ignored; if this address is your proxy, use --trust-proxy ADDRESS');
  });
}

/** Removes ports and brackets, which some proxies add, from the addresses in X-Forwarded-For. */
function readForwarded({ headers }: IncomingMessage): void {
  const given = headers['x-forwarded-for'];
  if (given === undefined) return;
  headers['x-forwarded-for'] = [given].flat().join(',').split(',').map(bareAddress).join(', ');
}

/** IPv6 needs brackets for a port: `2001:db8::7:4711` may be an address, `203.0.113.7:4711` not. */
function bareAddress(text: string): string {
  const [, inBrackets, ipv4] = /^(?:\[([0-9a-f:.]+)\](?::\d{1,5})?|([0-9.]+):\d{1,5})$/i.exec(text.trim()) ?? [];
  return inBrackets ?? ipv4 ?? text.trim();
}
