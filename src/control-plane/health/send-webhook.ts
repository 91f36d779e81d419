import type { LookupAddress } from 'node:dns';
import tls from 'node:tls';
import { Webhook as Signer } from 'standardwebhooks';
import { buildConnector, Client } from 'undici';
import { describeClosedHandshake, describeTlsFailure, type TlsServer } from '../../core/tls/describe-failure.ts';
import { codeOf, isTlsCode } from '../../core/tls/failure-code.ts';
import { noteTrust } from '../../core/tls/trust-system.ts';
import { withChain } from '../../core/tls/with-chain.ts';
import { readRetryAfter } from '../../core/util/backoff.ts';
import { createAddressCheck, findReceiver, hostOf, RefusedAddress, resolveName } from './receiver-addresses.ts';
import type { Webhook } from './webhook-settings.ts';

/** A message, which may be sent several times with the same id. */
export interface WebhookMessage {
  readonly id: string;
  /** JSON. */
  readonly body: string;
}

/** Null if the receiver accepted the message, else the reason, without secrets. */
export type WebhookOutcome = null | {
  readonly reason: string;
  readonly retryAfterMs: number;
  /** True for a status that another attempt with this message does not change. */
  readonly isRefusal: boolean;
};

/** Makes one attempt. The signal aborts it. */
export type Send = (message: WebhookMessage, at: Date, signal: AbortSignal) => Promise<WebhookOutcome>;

const attemptMs = 10_000;
/** A receiver must not delay an error that is already certain. */
const inspectMs = 2_000;
const maxRetryAfterMs = 3_600_000;

/**
 * Signs messages as specified by Standard Webhooks. Connects only to checked addresses, follows no
 * redirects, and reads only the status of a reply.
 */
export function createSend({ url: secretUrl, secrets, allow, findAddresses = resolveName }: Webhook): Send {
  const url = new URL(secretUrl.reveal());
  const signers = secrets.map((secret) => new Signer(secret.reveal()));
  const refuse = createAddressCheck(allow, url.protocol === 'http:');
  // A resolver that does not answer blocks only one thread of the pool.
  const findShared = shareRunning(() => findReceiver(hostOf(url), refuse, findAddresses));
  return async ({ id, body }, at, ending) => {
    const signal = AbortSignal.any([AbortSignal.timeout(attemptMs), ending]);
    let client: Client | undefined;
    try {
      client = createClient(url.origin, await orAborted(findShared(), signal), signal);
      const reply = await client.request({
        method: 'POST',
        path: `${url.pathname}${url.search}`,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'cpn-webhook',
          'webhook-id': id,
          'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`,
          'webhook-signature': signers.map((signer) => signer.sign(id, at, body)).join(' '),
        },
        body,
        signal,
      });
      reply.body.on('error', () => {}).destroy();
      if (reply.statusCode >= 200 && reply.statusCode < 300) return null;
      const retryAfter = [reply.headers['retry-after'] ?? []].flat()[0] ?? null;
      return {
        reason: `status ${reply.statusCode}`,
        retryAfterMs: readRetryAfter(retryAfter, at.getTime(), maxRetryAfterMs) ?? 0,
        isRefusal: reply.statusCode >= 400 && reply.statusCode < 500 && !passing.includes(reply.statusCode),
      };
    } catch (error) {
      return { reason: describe(error, url, signal, ending), retryAfterMs: 0, isRefusal: false };
    } finally {
      void client?.destroy().catch(() => {});
    }
  };
}

/** Request Timeout, Too Early, Too Many Requests. */
const passing: readonly number[] = [408, 425, 429];

/** Creates a client for these addresses. A later DNS change does not affect it. */
function createClient(origin: string, addresses: readonly LookupAddress[], signal: AbortSignal): Client {
  const options: buildConnector.BuildOptions = {
    allowH2: false,
    timeout: attemptMs,
    signal,
    lookup: (_name, { all }, done) => {
      const [{ address, family }] = addresses as [LookupAddress];
      if (all) done(null, [...addresses]);
      else done(null, address, family);
    },
  };
  // Reads the rejected certificates, and sends nothing.
  const inspect = buildConnector({ ...options, timeout: inspectMs, rejectUnauthorized: false, maxCachedSessions: 0 });
  const connect = withChain(buildConnector(options), inspect, () => noteTrust(() => tls));
  return new Client(origin, { connect, headersTimeout: 0, bodyTimeout: 0 });
}

/** Errors of undici may contain received data; their codes do not. */
function describe(error: unknown, url: URL, signal: AbortSignal, ending: AbortSignal): string {
  if (error instanceof RefusedAddress) return error.message;
  if (ending.aborted) return 'the control plane stops';
  if (signal.aborted) return `no reply in ${attemptMs / 1000} seconds`;
  const code = codeOf(error);
  if (code === 'unknown') return 'no HTTP reply';
  if (url.protocol === 'https:' && (isTlsCode(code) || isClosedHandshake(error))) {
    const receiver = receiverAt(url);
    const failure = isTlsCode(code)
      ? describeTlsFailure(error, receiver, Date.now())
      : describeClosedHandshake(receiver);
    return `${failure.problem}; ${failure.remedy}`;
  }
  const remedy = remedies[code];
  return remedy === undefined ? code : `${code}; ${remedy}`;
}

/** Node's error for a connection that ends during a TLS handshake has only this text, no code. */
function isClosedHandshake(error: unknown): boolean {
  return error instanceof Error && error.message.includes('before secure TLS connection was established');
}

function receiverAt(url: URL): TlsServer {
  return {
    name: 'the receiver',
    client: 'this machine',
    host: hostOf(url),
    port: url.port || '443',
    flag: '--webhook',
    plain: 'check the port in --webhook; plain http needs an http:// URL and --webhook-allow',
    trust: (certificate) =>
      `add ${certificate} to the CAs of this machine (Debian: update-ca-certificates), and restart the control plane`,
  };
}

const noWay = 'check its address, and the routes of this machine';
const silent = 'check its address and port, that it runs, and that no firewall is in between';
const remedies: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'check that the receiver runs, and the port of the URL',
  ENOTFOUND: 'check the host of the URL, and the resolvers of this machine',
  EAI_AGAIN: 'check the resolvers of this machine',
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ETIMEDOUT: silent,
  UND_ERR_CONNECT_TIMEOUT: silent,
};

/** Runs `work` at most once at a time: concurrent calls share its result. */
function shareRunning<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined;
  return () => {
    running ??= work().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** Returns the result of work that cannot be cancelled, or rejects when the signal aborts. */
function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
