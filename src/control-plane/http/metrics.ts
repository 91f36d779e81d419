import http from 'node:http';
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { findFirstToEnd } from '../../core/tls/served-chain.ts';
import type { AuditReceiver } from '../audit/send-audit.ts';
import { CannotListen, OutcomeUnknown, Unavailable } from '../errors.ts';
import type { Context } from '../service/context.ts';
import { measure } from '../service/monitoring.ts';
import type { ServedCertificate } from './tls-files.ts';
import type { Deadlines } from './transport.ts';

/** Metrics without labels from callers: routes are templates, methods are Node's. */
export interface ServerMetrics {
  readonly contentType: string;
  /** All metrics in the format of Prometheus. */
  format(): Promise<string>;
  countAnswer(request: FastifyRequest, reply: FastifyReply): void;
  /** Counts a refusal before a request was parsed. */
  countNoRequest(status: number): void;
  /** Counts the failure of a request if the database caused it. */
  countFailure(error: unknown): void;
  countFailedDelivery(): void;
  countFailedAudit(receiver: Pick<AuditReceiver, 'label'>): void;
}

/** Creates the metrics of one control plane. The metrics of the process are shared. */
export function createMetrics(
  context: Pick<Context, 'db' | 'readTime' | 'notifier'>,
  certificate: () => ServedCertificate | null,
  receivers: readonly Pick<AuditReceiver, 'name' | 'label'>[] = [],
): ServerMetrics {
  const shared = processRegistry();
  const registry = new Registry();
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Counter({ name, help, labelNames, registers });
  const requests = counter(
    'cpn_http_requests_total',
    'Requests answered, by route; status 499 if the client disconnected first, route none if no route matched.',
    ['method', 'route', 'status'],
  );
  const durations = new Histogram({
    name: 'cpn_http_request_duration_seconds',
    help: 'Time to the end of a reply, except replies that may wait for a change.',
    labelNames: ['method', 'route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const enrollments = counter('cpn_enrollments_total', 'Enrolments that were answered, repeated ones too.', []);
  const logins = counter('cpn_logins_refused_total', 'Logins with a wrong password or an unknown address.', []);
  const limited = counter('cpn_rate_limited_total', 'Requests refused with 429.', ['route']);
  const mapBytes = counter(
    'cpn_map_bytes_total',
    'Bytes of the maps sent to hosts and administrators, whole or what changed.',
    [],
  );
  const databaseErrors = counter('cpn_database_errors_total', 'Requests that failed because the database failed.', []);
  const failedDeliveries = counter(
    'cpn_webhook_failed_attempts_total',
    'Attempts to send an event to the webhook that the receiver did not accept.',
    [],
  );
  const failedAudit = counter(
    'cpn_audit_failed_attempts_total',
    'Attempts to send audit entries to a receiver that did not take them.',
    ['receiver'],
  );
  new Gauge({
    name: 'cpn_waiting_connectors',
    help: 'Requests that wait for a change of their network.',
    registers,
    collect() {
      this.set(context.notifier.count());
    },
  });
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers });
  const hosts = gauge('cpn_hosts', 'Hosts of all networks, by the state in the last event.', ['state']);
  const waiting = gauge('cpn_webhook_events_waiting', 'Events that wait for the webhook.', []);
  new Gauge({
    name: 'cpn_tls_certificate_expires_timestamp_seconds',
    help: 'When the first certificate of the served chain ends, in Unix time, by the file of the chain.',
    labelNames: ['file'],
    registers,
    collect() {
      const served = certificate();
      const first = findFirstToEnd(served?.chain ?? []);
      this.reset();
      if (served !== null && first !== null) this.set({ file: served.file }, first.validTo / 1000);
    },
  });
  const oldest = gauge('cpn_webhook_oldest_event_seconds', 'Age of the oldest event that waits; 0 for none.', []);
  const unsent = gauge('cpn_audit_entries_waiting', 'Audit entries that a receiver does not have yet.', ['receiver']);
  /** If the database does not answer, only these metrics are missing. */
  const readStored = async () => {
    try {
      const stored = await measure(context, receivers);
      for (const state of ['online', 'offline'] as const) hosts.set({ state }, stored.hosts[state]);
      waiting.set(stored.deliveries.count);
      oldest.set(stored.deliveries.ageSeconds);
      for (const { label, count } of stored.audit) unsent.set({ receiver: label }, count);
    } catch {
      hosts.reset();
      waiting.remove();
      oldest.remove();
      unsent.reset();
    }
  };
  return {
    contentType: registry.contentType,
    async format() {
      await readStored();
      return Registry.merge([shared, registry]).metrics();
    },
    countAnswer(request, reply) {
      const { method } = request;
      const route = request.routeOptions.url ?? 'none';
      const status = reply.raw.headersSent ? reply.statusCode : 499;
      requests.inc({ method, route, status });
      if (!reply.hasHeader('preference-applied')) durations.observe({ method, route }, reply.elapsedTime / 1000);
      if (status === 429) limited.inc({ route });
      if (route === '/api/networks/enroll' && status === 201) enrollments.inc();
      if (route === '/api/auth/login' && status === 401) logins.inc();
      if (route === '/api/networks/:network' && method === 'GET' && (status === 200 || status === 226)) {
        mapBytes.inc(Number(reply.getHeader('content-length') ?? 0));
      }
    },
    countNoRequest: (status) => requests.inc({ method: 'none', route: 'none', status }),
    countFailure(error) {
      if (isOfDatabase(error)) databaseErrors.inc();
    },
    countFailedDelivery: () => failedDeliveries.inc(),
    countFailedAudit: ({ label }) => failedAudit.inc({ receiver: label }),
  };
}

/** SQLite's errors have a code, PostgreSQL's a severity, and ours for lost connections a cause. */
function isOfDatabase(error: unknown): boolean {
  if (error instanceof Unavailable || error instanceof OutcomeUnknown) return error.cause !== undefined;
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return code === 'ERR_SQLITE_ERROR' || severity !== undefined;
}

let ofProcess: Registry | undefined;

/**
 * Milliseconds between samples of the event loop's delay. With the default, 10, an idle process
 * wakes 100 times a second.
 */
const lagSampleMs = 100;

/** Collects process metrics only once: each collection adds a garbage collection observer. */
function processRegistry(): Registry {
  if (ofProcess) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: lagSampleMs });
  // These gauges have names of counters, which promtool rejects.
  for (const what of ['handles', 'requests', 'resources']) ofProcess.removeSingleMetric(`nodejs_active_${what}_total`);
  return ofProcess;
}

/** An address to listen on. Port 0 selects any free port. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Serves only the metrics, in plain HTTP, to all clients of an address. */
export async function serveMetrics(metrics: ServerMetrics, { host, port }: ListenAddress, deadlines: Deadlines) {
  const options = {
    headersTimeout: deadlines.headers,
    requestTimeout: deadlines.request,
    connectionsCheckingInterval: deadlines.checkInterval,
  };
  const app = fastify({
    forceCloseConnections: true,
    serverFactory: (handler) => http.createServer(options, handler).setTimeout(deadlines.idle),
  });
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.format()));
  try {
    const url = await app.listen({ host, port, listenTextResolver: () => 'listening' });
    return { url: `${url}/metrics`, close: () => app.close() };
  } catch (error) {
    await app.close();
    throw new CannotListen(host, port, error, '--metrics');
  }
}
