import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Logger } from 'pino';
import type { EventType } from '../contract/event.ts';
import type { Secret } from '../core/crypto/secret.ts';
import type { Prefix } from '../core/net/cidr.ts';
import { isLoopback } from '../core/net/endpoint.ts';
import { startChaining } from './audit/chain-audit.ts';
import type { AuditReceiver } from './audit/send-audit.ts';
import { watchCertificate } from './certificate-watch.ts';
import { createTurns } from './concurrency.ts';
import { type DatabaseClock, followDatabaseClock } from './database-clock.ts';
import { type PasswordCost, usualPasswordCost } from './domain/passwords.ts';
import { type SessionLimits, usualSessionLimits } from './domain/session-limits.ts';
import type { OidcSettings, SingleSignOn } from './domain/single-sign-on.ts';
import type { Random } from './domain/tokens.ts';
import { failureFields } from './errors.ts';
import { Acknowledgements } from './health/acknowledgements.ts';
import { Evaluator } from './health/evaluate.ts';
import { FailureLog } from './health/failure-log.ts';
import { LostConnections } from './health/lost-connections.ts';
import { Presence } from './health/presence.ts';
import type { Webhook } from './health/webhook-settings.ts';
import type { App } from './http/app.ts';
import { defaultLimits, type Limits } from './http/limits.ts';
import { type ListenOptions, listen } from './http/listen.ts';
import { createMetrics, type ListenAddress, type ServerMetrics, serveMetrics } from './http/metrics.ts';
import { createServer } from './http/server.ts';
import type { TlsFiles } from './http/tls-files.ts';
import { createTransport, type Deadlines, defaultDeadlines, type Transport } from './http/transport.ts';
import { DirectPaths } from './paths/direct-paths.ts';
import { listOwnSockets } from './paths/own-sockets.ts';
import { ChangeNotifier } from './push/change-notifier.ts';
import { PeerMessages } from './push/peer-messages.ts';
import { checkFirstOwner, isForeignOwner, makeFirstOwner, type OwnerCredentials } from './service/accounts/owner.ts';
import type { Context } from './service/context.ts';
import { type ExpiryTimer, expirePeers, startExpiry } from './service/expiry.ts';
import { createPeerChangeLimit } from './service/peer-change-limit.ts';
import { pruneAuditDaily, pruneEventsHourly } from './service/retention.ts';
import { restoreRules } from './service/rules/confirm-rules.ts';
import { type ControlPlaneStore, readDatabaseTime, type Topic } from './store/database.ts';
import { openStore } from './store/sqlite/store.ts';

export interface ServeOptions extends ListenOptions {
  /** The folder of SQLite, created if missing, closed to others. Unused if `database` is set. */
  readonly dataDir: string;
  /** The URL of a PostgreSQL database to use instead, also together with other control planes. */
  readonly database?: Secret | null;
  /** Becomes the first user if there is none. Without an owner and users, nothing is served. */
  readonly owner?: OwnerCredentials | null;
  /** True if networks may offer routes to public addresses, and the default route. */
  readonly allowPublicRoutes: boolean;
  /** Days that the audit log is kept; a year by default. */
  readonly auditDays?: number;
  readonly webhook?: Webhook | null;
  /** Where the audit goes in addition. */
  readonly auditLog?: AuditReceiver | null;
  /** Overrides how often audit entries are chained. */
  readonly chainMs?: number;
  /**
   * Days that each peer's last request is kept, 30 by default; 0 keeps it only for online peers.
   */
  readonly presenceDays?: number;
  /** Overrides how often presence is written and judged, and how long endpoints are gathered. */
  readonly healthTimes?: Partial<typeof usualHealthTimes>;
  readonly limits?: Partial<Limits>;
  readonly deadlines?: Partial<Deadlines>;
  readonly passwordCost?: PasswordCost;
  readonly sessionLimits?: SessionLimits;
  readonly oidc?: OidcSettings | null;
  /** Overrides how often the issuer is asked about sessions that are due. */
  readonly refreshPauseMs?: number;
  /** False closes logins with a password, but that of a reset owner on this host. */
  readonly allowsPasswords?: boolean;
  readonly tls?: TlsFiles | null;
  /** Proxies whose X-Forwarded-For is trusted. */
  readonly proxies?: readonly Prefix[];
  /** The address of the metrics, for all clients. Else local callers get them at the main one. */
  readonly metrics?: ListenAddress | null;
  /** The folder of the built console, which is served at `/`. */
  readonly console?: string | null;
  /** Restricts the hosts at which browsers open the console. */
  readonly publicUrls?: readonly URL[];
  readonly logger: Logger;
  /** Overrides the time of this host and the database. */
  readonly now?: (() => Date) | undefined;
  /** Milliseconds since 1970 by a monotonic clock; by default this host's, or `now`. */
  readonly steadyNow?: (() => number) | undefined;
  readonly random?: Random;
  /** Set by tests, which count its waits. */
  readonly notifier?: ChangeNotifier;
  readonly healthNotifier?: ChangeNotifier;
}

export interface ControlPlane {
  readonly url: string;
  /** The URL of the metrics, if they have a separate address. */
  readonly metricsUrl: string | null;
  /** Reloads the certificate and returns its path; null without TLS. An error changes nothing. */
  reload(): string | null;
  /**
   * Replies to current requests and long polls, refuses others. Takes about ten seconds at most.
   */
  close(): Promise<void>;
}

/** Runs the control plane, which serves when this returns. Acknowledged changes survive a kill. */
export async function serve(options: ServeOptions): Promise<ControlPlane> {
  const { owner = null, allowPublicRoutes, logger, random = randomBytes } = options;
  const given = options.now;
  const readTime = given === undefined ? readDatabaseTime : async () => given();
  const steadyNow = options.steadyNow ?? (given === undefined ? createSteadyClock() : () => given().getTime());
  const {
    notifier = new ChangeNotifier(),
    healthNotifier = new ChangeNotifier(healthIntervalMs),
    proxies = [],
    passwordCost = usualPasswordCost,
    sessionLimits = usualSessionLimits,
  } = options;
  const messageNotifier = new ChangeNotifier();
  const transport = createTransport(options.tls ?? null, { ...defaultDeadlines, ...options.deadlines });
  // Invalid owner credentials must not leave an empty folder behind.
  if (!options.database && !existsSync(options.dataDir)) checkFirstOwner(owner);
  const store = await open(options, { map: notifier, health: healthNotifier, messages: messageNotifier });
  // The clients of a proxy on this host may be anywhere.
  const onLoopback = isLoopback(options.host) && proxies.length === 0;
  const timely: {
    expiry?: ExpiryTimer;
    confirmation?: ExpiryTimer;
    health?: ReturnType<typeof startHealth>;
    clock?: DatabaseClock;
  } = {};
  try {
    const clock = given === undefined ? await followDatabaseClock(store.db, logger) : { now: given, stop: () => {} };
    timely.clock = clock;
    const { now } = clock;
    const limits = { ...defaultLimits, ...options.limits };
    const context = {
      db: store.db,
      announce: store.announce,
      isListening: store.isListening,
      now,
      steadyNow,
      readTime,
      random,
      passwordCost,
      sessionLimits,
      singleSignOn: await openSingleSignOn(options.oidc ?? null, random),
      allowsPasswords: options.allowsPasswords ?? true,
      notifier,
      healthNotifier,
      webhookTypes: options.webhook?.types ?? new Set<EventType>(),
      keepsPresence: (options.presenceDays ?? usualPresenceDays) > 0,
      allowPublicRoutes,
      publicUrls: options.publicUrls ?? [],
      onLoopback,
      peerChangeLimit: createPeerChangeLimit(limits.peerChanges, steadyNow),
      newPeerLimit: createPeerChangeLimit(
        4 * limits.peerChanges,
        steadyNow,
        1000,
        'changes of new peers of this network',
      ),
      enrollmentLimit: createPeerChangeLimit(limits.userChanges, steadyNow, 1000, 'enrolments into this network'),
      reportEventLimit: createPeerChangeLimit(limits.peerReports, steadyNow),
      // 60 in the first hour.
      refusalLimit: createPeerChangeLimit(30, steadyNow, 120_000),
      refusedConnectionLimit: createPeerChangeLimit<string>(1, steadyNow, 3_600_000),
      reportLimit: createPeerChangeLimit(limits.peerReports, steadyNow, 2000, 'reports of this peer'),
      pathLimit: createPeerChangeLimit(limits.peerReports, steadyNow, 1000, 'statements about paths of this peer'),
      pathEventLimit: createPeerChangeLimit(60, steadyNow),
      pairEventLimit: createPeerChangeLimit<string>(6, steadyNow, 1_800_000),
      rescheduleExpiry: () => {
        timely.expiry?.reschedule();
        timely.confirmation?.reschedule();
      },
    };
    if (await makeFirstOwner(context, owner)) logger.info({ email: owner?.email }, 'first owner made');
    else if (owner && (await isForeignOwner(context, owner)))
      logger.warn({ email: owner.email }, 'first owner not made: the database has users, and this one is not an owner');
    const receivers = await openAuditReceivers(context, options);
    const metrics = createMetrics(context, transport.certificate, receivers);
    const metricsElsewhere = Boolean(options.metrics);
    const health = startHealth(context, messageNotifier, options);
    timely.health = health;
    const served = { metrics, metricsElsewhere, console: options.console ?? null, ...health };
    await health.messages.restore();
    const app = await createServer(context, { transport, limits, proxies, ...served, logger });
    const { url, showing } = await startListening(app, metrics, transport, options);
    health.listening.url = url;
    const certificate = watchCertificate(transport.certificate, now, logger);
    const pruning = pruneAuditDaily(context, options.auditDays ?? 365, (error) =>
      logger.error(failureFields(error), 'audit not pruned'),
    );
    const pruningEvents = pruneEventsHourly(context, (error) =>
      logger.error(failureFields(error), 'events not pruned'),
    );
    const expiry = startExpiry(
      () => expirePeers(context),
      now,
      (error) => logger.error(failureFields(error), 'expired peers not taken out of their networks'),
    );
    timely.expiry = expiry;
    const confirmation = startExpiry(
      () => restoreRules(context),
      now,
      (error) => logger.error(failureFields(error), 'earlier rules not restored'),
      confirmationPauseMs,
    );
    timely.confirmation = confirmation;
    const refreshing = await startRefreshes(context, options);
    const auditing = await startAudit(context, receivers, options, metrics.countFailedAudit);
    const deliveries = await startWebhook(context, options.webhook ?? null, logger, metrics.countFailedDelivery);
    const close = async () => {
      logger.info('closing');
      const delivered = deliveries?.stop();
      await app
        .close()
        .finally(() => delivered)
        .finally(refreshing?.stop)
        .finally(auditing.stop)
        .finally(showing?.close)
        .finally(certificate.stop)
        .finally(pruning.stop)
        .finally(pruningEvents.stop)
        .finally(expiry.stop)
        .finally(confirmation.stop)
        .finally(health.stop)
        .finally(clock.stop)
        .finally(store.close);
    };
    const reload = () => {
      const file = transport.reload();
      certificate.onReload();
      return file;
    };
    return { url, metricsUrl: showing?.url ?? null, reload, close: once(close) };
  } catch (error) {
    await timely.health?.stop();
    timely.clock?.stop();
    await store.close();
    throw error;
  }
}

/** Another process may have stopped after it set rules that wait for a confirmation. */
const confirmationPauseMs = 5000;

function createSteadyClock(): () => number {
  const offset = Date.now() - performance.now();
  return () => offset + performance.now();
}

/** The libraries of the webhook are loaded only if it is used. */
async function startWebhook(context: Context, webhook: Webhook | null, logger: Logger, onFailure: () => void) {
  if (webhook === null) return null;
  const { startDeliveries } = await import('./health/deliver-events.ts');
  return startDeliveries(context, webhook, logger, onFailure);
}

/** The libraries of OpenID Connect are loaded only if it is used. */
async function openSingleSignOn(settings: OidcSettings | null, random: Random): Promise<SingleSignOn | null> {
  if (settings === null) return null;
  const { connectIssuer } = await import('./oidc/connect-issuer.ts');
  return connectIssuer(settings, random);
}

async function startRefreshes(
  context: Context,
  { logger, refreshPauseMs }: Pick<ServeOptions, 'logger' | 'refreshPauseMs'>,
): Promise<{ stop(): Promise<void> } | null> {
  const { singleSignOn } = context;
  if (singleSignOn === null) return null;
  const { startRefreshing } = await import('./oidc/refresh.ts');
  return startRefreshing({ ...context, singleSignOn }, logger, refreshPauseMs);
}

async function openAuditReceivers(
  { now }: Pick<Context, 'now'>,
  { auditLog, webhook }: Pick<ServeOptions, 'auditLog' | 'webhook'>,
): Promise<AuditReceiver[]> {
  const receivers = auditLog ? [auditLog] : [];
  if (!webhook || webhook.actions.length === 0) return receivers;
  const { createWebhookReceiver } = await import('./audit/receivers.ts');
  const { createSend } = await import('./health/send-webhook.ts');
  return [...receivers, createWebhookReceiver(webhook, createSend(webhook), now)];
}

/** Chains the audit, and sends it to each receiver by itself: a dead one delays no other. */
async function startAudit(
  context: Context,
  receivers: readonly AuditReceiver[],
  { chainMs, logger }: Pick<ServeOptions, 'chainMs' | 'logger'>,
  onFailure: (receiver: AuditReceiver) => void,
): Promise<{ stop(): Promise<void> }> {
  const chaining = startChaining(context, logger, chainMs);
  const running: { stop(): Promise<void> }[] = [chaining];
  if (receivers.length > 0) {
    const { startSending } = await import('./audit/send-audit.ts');
    for (const receiver of receivers) {
      running.push(startSending(context, receiver, logger, () => onFailure(receiver)));
    }
  }
  return { stop: async () => void (await Promise.all(running.map((each) => each.stop()))) };
}

/** Readers of a network's health are notified at most twice a second. */
const healthIntervalMs = 500;
const usualHealthTimes = {
  ...{ flushMs: 5000, tickMs: 5000, settleMs: 300 },
  ...{ closedMs: 500, repliedMs: 4000, repeatMs: 15_000, retryMs: 3000 },
  ...{ gatherMs: 700, longestGatherMs: 3000 },
};

const usualPresenceDays = 30;

function startHealth(
  context: Context,
  messageNotifier: ChangeNotifier,
  { presenceDays = usualPresenceDays, healthTimes, logger }: ServeOptions,
) {
  const failures = new FailureLog(logger);
  const options = { ...usualHealthTimes, ...healthTimes, failures };
  const onReturn = (network: number) => evaluator.schedule(network);
  const presence = new Presence(context, { ...options, days: presenceDays, onReturn });
  const messages = new PeerMessages(context);
  const losses = new LostConnections(context, presence, messages, options);
  const listening: { url: string | null } = { url: null };
  const ownSockets = () => listOwnSockets(listening.url, context.publicUrls);
  const paths = new DirectPaths(context, messages, { ...options, ownSockets });
  const onSilent = (network: number, peers: readonly number[]) => losses.ask(network, peers);
  const evaluator = new Evaluator(context, presence, { ...options, onSilent, keepsPresence: presenceDays > 0 });
  const acknowledgements = new Acknowledgements(context, options);
  context.notifier.subscribe(onReturn);
  const onMessages = createTurns(async (network: number) => {
    const note = (error: unknown) => failures.note('messages', error);
    await messages
      .deliver(network)
      .then(() => losses.noteAsked(network))
      .then(() => note(null), note);
  });
  messageNotifier.subscribe(onMessages);
  const stop = () =>
    losses
      .stop()
      .finally(() => paths.stop())
      .finally(() => evaluator.stop())
      .finally(() => presence.stop())
      .finally(() => acknowledgements.stop());
  return { presence, evaluator, acknowledgements, losses, messages, paths, listening, stop };
}

/** PostgreSQL's driver is loaded only if it is used. */
async function open(
  { dataDir, database, logger }: ServeOptions,
  notifiers: Readonly<Record<Topic, ChangeNotifier>>,
): Promise<ControlPlaneStore> {
  if (!database) return openStore(dataDir);
  const { openPostgres } = await import('./store/postgres/store.ts');
  return openPostgres(database, {
    notify: (network, topic) => notifiers[topic].notify(network),
    isAwaited: (network, topic) => notifiers[topic].count(network) > 0,
    notifyAll: () => {
      logger.info('listening for changes of other processes again');
      for (const notifier of Object.values(notifiers)) notifier.notifyAll();
    },
    lost: (reason) => logger.warn({ reason }, 'not listening for changes of other processes'),
    openToOthers: (name) =>
      logger.warn(
        { database: name, remedy: 'REVOKE CONNECT ON DATABASE … FROM PUBLIC' },
        'any role of the PostgreSQL server may connect to the database',
      ),
  });
}

/** Listens, also on a separate address of the metrics. After a failure, nothing listens. */
async function startListening(app: App, metrics: ServerMetrics, transport: Transport, options: ServeOptions) {
  try {
    const url = await listen(app, transport, options);
    const showing = options.metrics && (await serveMetrics(metrics, options.metrics, transport.deadlines));
    return { url, showing };
  } catch (error) {
    await app.close();
    throw error;
  }
}

function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= close();
    return closing;
  };
}
