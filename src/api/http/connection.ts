import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { buildConnector, Client, type Dispatcher, type FormData } from 'undici';
import type { Secret } from '../../core/crypto/secret.ts';
import type { Resolved } from '../../core/names/resolved-names.ts';
import type { HttpProxy } from '../../core/net/service-address.ts';
import { type Certificate, readSentChain } from '../../core/tls/certificate.ts';
import type { TlsServer } from '../../core/tls/describe-failure.ts';
import { isLateAlert } from '../../core/tls/failure-code.ts';
import { noteTrust } from '../../core/tls/trust-system.ts';
import { withChain, withOtherTrust } from '../../core/tls/with-chain.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { addressFinder } from './find-addresses.ts';
import { type SocketConnector, withListenerCheck } from './listener-check.ts';
import { forwardBy, type ProxyForwarding, refusal, toProxy, tunnel } from './proxy.ts';
import { connectSocket } from './socket-check.ts';
import { type ConnectionTarget, isSameTarget } from './target.ts';
import { controlPlaneAt } from './tls-server.ts';

/** The limits for reading a reply, and the secrets that messages must not show. */
export interface ReplyLimits {
  readonly url: string;
  /** The limit of the body, before and after inflating. */
  readonly maxBytes: number;
  readonly secrets: readonly Secret[];
}

export interface HttpMessage {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The files of a form are read from disk while it is sent, like a stream. */
  readonly body: string | Buffer | Readable | FormData | null;
}

export type ReplyHead = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

const connectTimeoutMs = 10_000;
/** A server must not delay an error that is already certain. */
const inspectTimeoutMs = 2_000;
/**
 * Milliseconds per address except the last (RFC 8305), after which Node aborts an attempt. With its
 * default of 250, a slow service is unreachable if its last address is dead.
 */
const attemptTimeoutMs = 1_000;
/**
 * TCP keepalive: a connection whose path is gone without a reset ends after 10 s, also during a
 * long poll. Node before 24 sends ten probes, one per second.
 */
const probes = { afterMs: 5_000, everyMs: 1_000, count: 5 };
/** Milliseconds after which undici closes an idle connection. */
const spareMs = 4_000;

/**
 * One call's connection to one origin, perhaps by a proxy, for all its attempts. Another call
 * reuses it only if both agree, see {@link Spare}. An undici `Client` is bound to its origin, so no
 * caller can send a token elsewhere by mistake. No socket is idle between other calls, so no
 * unrepeatable request uses one that the server has just closed.
 */
export class Connection {
  readonly target: ConnectionTarget;
  readonly #forwarding: ProxyForwarding | null;
  readonly #end = new AbortController();
  readonly #client: Client;
  /** Null for plain http. */
  readonly #tlsServer: TlsServer | null;
  /** Errors from before the connection existed: nothing was sent. */
  readonly #unconnected = new WeakSet<Error>();
  #peer: string | null = null;
  #socket: Socket | null = null;
  #listener: number | null = null;
  /** An alert of the server after the handshake. undici reports only a closed connection. */
  #alert: Error | null = null;

  /** @param resolved the addresses of names, for when the resolver fails */
  constructor(target: ConnectionTarget, resolved: Resolved = {}) {
    const { origin, proxy, authorities } = target;
    this.target = target;
    const isPlain = origin.startsWith('http:');
    this.#tlsServer = isPlain ? null : controlPlaneAt(origin, authorities);
    const { signal } = this.#end;
    const options = {
      allowH2: false,
      timeout: connectTimeoutMs,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: attemptTimeoutMs,
      signal,
      lookup: addressFinder(resolved, isPlain),
    };
    // An intermediate certificate is sufficient as a trust anchor, as for curl.
    const narrow = authorities === null ? {} : { ca: [...authorities], allowPartialTrustChain: true };
    const dial = this.#createDialler({ ...options, ...narrow });
    // Reads the rejected certificates, and sends nothing.
    const inspect = buildConnector({
      ...options,
      ...narrow,
      timeout: inspectTimeoutMs,
      rejectUnauthorized: false,
      maxCachedSessions: 0,
    });
    const noteUsualTrust = () => noteTrust(() => process.getBuiltinModule('node:tls'));
    const noteTrustOfOrigin = authorities === null ? noteUsualTrust : () => () => false;
    const direct = withChain(dial, inspect, noteTrustOfOrigin);
    // A company's proxy often has a certificate of the same CA.
    const usual = authorities === null ? dial : withOtherTrust(this.#createDialler(options), dial);
    const dialVia = withChain(usual, inspect, noteUsualTrust);
    const through = (via: HttpProxy) =>
      withChain(
        tunnel(via, dialVia, dial, connectTimeoutMs),
        tunnel(via, dialVia, inspect, inspectTimeoutMs),
        noteTrustOfOrigin,
      );
    this.#forwarding = isPlain && proxy !== null ? forwardBy(proxy, origin) : null;
    const connect = proxy === null ? direct : isPlain ? toProxy(proxy, dialVia) : through(proxy);
    this.#client = new Client(this.#forwarding?.proxy ?? origin, {
      // The deadline of the whole call limits these.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveMaxTimeout: spareMs,
      connect: (options, done) =>
        connect(options, (...[error, socket]) => {
          if (error) this.#unconnected.add(error);
          this.#peer = socket?.remoteAddress ?? null;
          this.#socket = socket ?? null;
          this.#alert = null;
          socket?.setKeepAlive(true, probes.afterMs, probes.everyMs, probes.count);
          socket?.once('error', (failure) => {
            if (isLateAlert(failure)) this.#alert = failure;
          });
          if (socket) done(null, socket);
          else done(error as Error, null);
        }),
    });
  }

  /** Connects to the target or its proxy, and records the user whose program accepts. */
  #createDialler(settings: buildConnector.BuildOptions): SocketConnector {
    const { socketPath, check } = this.target;
    const note = (user: number | null) => {
      this.#listener = user;
    };
    if (socketPath !== null) return connectSocket(socketPath, check ?? { expected: null }, settings, note);
    const connect = buildConnector(settings);
    return check === null ? connect : withListenerCheck(connect, check, note);
  }

  /** The last connection's remote address (the proxy's, if any) in the kernel's form, or null. */
  get peer(): string | null {
    return this.#peer;
  }

  /** The user whose program accepted on loopback; null if invisible or unchecked. */
  get listener(): number | null {
    return this.#listener;
  }

  /** The service's certificate chain while the last connection is open; empty for plain http. */
  get certificates(): Certificate[] {
    // Avoids node:tls, which takes 2.6 MiB and is unnecessary for plain http.
    const socket = this.#tlsServer && (this.#socket as Partial<TLSSocket> | null);
    return readSentChain(socket?.getPeerCertificate?.(true) ?? {});
  }

  /** Sends a request and returns its reply's head. Follows no redirects. @throws AttemptFailed */
  async send(message: HttpMessage): Promise<ReplyHead> {
    try {
      const response = await this.#client.request(this.#forwarding?.rewrite(message) ?? message);
      if (this.#forwarding === null || response.statusCode !== 407) return response;
      await response.body.dump();
      throw refusal(407, this.target.proxy as HttpProxy, this.target.origin);
    } catch (error) {
      if (error instanceof AttemptFailed) throw error;
      throw AttemptFailed.from(this.#alert ?? error, this.#unconnected.has(error as Error), this.#tlsServer);
    }
  }

  /** Aborts at once, also in a TCP or TLS handshake, which undici's `signal` would not end. */
  abort(): void {
    this.#end.abort();
  }

  close(): void {
    void this.#client.destroy();
  }
}

/** A connection that a call, such as a long poll, left for the next within {@link spareMs}. */
export class Spare {
  #left: Connection | null = null;

  leave(connection: Connection): void {
    this.#left?.close();
    this.#left = connection;
  }

  /** Takes the open connection to the target; null without one. */
  take(target: ConnectionTarget): Connection | null {
    const left = this.#left;
    if (left === null || !isSameTarget(left.target, target)) return null;
    this.#left = null;
    return left;
  }
}
