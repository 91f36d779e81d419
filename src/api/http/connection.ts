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

/** The limits for reading a reply, and the secrets that no message may show. */
export interface ReplyLimits {
  readonly url: string;
  /** Of the body, as it comes and again once inflated. */
  readonly maxBytes: number;
  readonly secrets: readonly Secret[];
}

/** What goes over the wire in one attempt. */
export interface HttpMessage {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A form's files are read from disk as it is sent, like a stream. */
  readonly body: string | Buffer | Readable | FormData | null;
}

export type ReplyHead = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

const connectTimeoutMs = 10_000;
/** A server must not delay an error that is known already. */
const inspectTimeoutMs = 2_000;
/**
 * Milliseconds for each address of a name but the last one (RFC 8305). Node gives up an attempt instead of letting it go on: with its
 * default of 250, a service behind a slower link is never reached where its last address is dead.
 */
const attemptTimeoutMs = 1_000;
/**
 * TCP keepalive: a connection whose path is gone without a reset ends after 10 s, also while a long poll waits. Node before 24 sends ten
 * probes, one a second.
 */
const probes = { afterMs: 5_000, everyMs: 1_000, count: 5 };
/** Milliseconds after which undici closes a connection without a request. */
const spareMs = 4_000;

/**
 * The connection of one call to one origin, perhaps through a proxy, used again by the attempts of that call, and by another call only where both agree:
 * see {@link Spare}. An undici `Client` is bound to its origin, so no mistake above can carry a token elsewhere; and as no socket waits
 * between other calls, a request that must not be sent twice never goes out on one that the server has just closed.
 */
export class Connection {
  readonly target: ConnectionTarget;
  readonly #forwarding: ProxyForwarding | null;
  readonly #end = new AbortController();
  readonly #client: Client;
  /** Null for plain http. */
  readonly #tlsServer: TlsServer | null;
  /** Errors from before there was a connection: nothing was sent. */
  readonly #unconnected = new WeakSet<Error>();
  #peer: string | null = null;
  #socket: Socket | null = null;
  #listener: number | null = null;
  /** An alert of the server after the handshake. undici reports that the connection was closed. */
  #alert: Error | null = null;

  /** @param resolved the addresses of names for when the resolver fails */
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
    // An intermediate certificate alone is enough, as for curl.
    const narrow = authorities === null ? {} : { ca: [...authorities], allowPartialTrustChain: true };
    const dial = this.#createDialler({ ...options, ...narrow });
    // Reads the certificates that were not accepted, and sends nothing.
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
    // The proxy of a company often has a certificate of the same CA.
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
      // The deadline of the whole call bounds these.
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

  /** Makes connections to the target, or to its proxy, and notes whose program accepts them. */
  #createDialler(settings: buildConnector.BuildOptions): SocketConnector {
    const { socketPath, check } = this.target;
    const note = (user: number | null) => {
      this.#listener = user;
    };
    if (socketPath !== null) return connectSocket(socketPath, check ?? { expected: null }, settings, note);
    const connect = buildConnector(settings);
    return check === null ? connect : withListenerCheck(connect, check, note);
  }

  /**
   * The address at the other end of the last connection that was made, as the kernel writes it: that of the proxy, where there is one; null
   * for none.
   */
  get peer(): string | null {
    return this.#peer;
  }

  /** The user whose program accepted the last connection on loopback; null where that is not visible or not checked. */
  get listener(): number | null {
    return this.#listener;
  }

  /** The certificate of the service and its issuers, while the last connection is open; empty for plain http. */
  get certificates(): Certificate[] {
    // Without node:tls, which takes 2.6 MiB and is not needed for plain http.
    const socket = this.#tlsServer && (this.#socket as Partial<TLSSocket> | null);
    return readSentChain(socket?.getPeerCertificate?.(true) ?? {});
  }

  /** One request and the head of its reply; redirects are not followed. Fails with {@link AttemptFailed}. */
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

  /** Ends everything under way at once, a TCP or TLS handshake included, which undici's own `signal` would leave running. */
  abort(): void {
    this.#end.abort();
  }

  close(): void {
    void this.#client.destroy();
  }
}

/** The connection that a call left for the next one, which must come within {@link spareMs}: a long poll, or a report between two. */
export class Spare {
  #left: Connection | null = null;

  leave(connection: Connection): void {
    this.#left?.close();
    this.#left = connection;
  }

  /** Returns the open connection to the target, or null without one. */
  take(target: ConnectionTarget): Connection | null {
    const left = this.#left;
    if (left === null || !isSameTarget(left.target, target)) return null;
    this.#left = null;
    return left;
  }
}
