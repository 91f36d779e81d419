import http, { type RequestListener, STATUS_CODES } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { Unavailable } from '../errors.ts';
import type { ChangeNotifier } from '../push/change-notifier.ts';
import type { App } from './app.ts';
import { ConnectionTracker } from './connections.ts';
import { readTlsFiles, type ServedCertificate, type TlsFiles, type TlsIdentity } from './tls-files.ts';
import { nameSocketClients } from './unix-socket.ts';

/** The time limits of clients, in milliseconds. */
export interface Deadlines {
  /** To send a request's headers, from its first byte or the beginning of a new connection. */
  readonly headers: number;
  /** To send a request with its body. */
  readonly request: number;
  /** Between requests. Load balancers keep connections for less, so none reuses a closed one. */
  readonly keepAlive: number;
  /** Without traffic on a connection. Longer than the longest long poll, which has none. */
  readonly idle: number;
  /** Without traffic before TCP probes a connection. */
  readonly tcpProbe: number;
  /** The interval of checks of `headers` and `request`. */
  readonly checkInterval: number;
  /** To finish requests when the control plane closes. */
  readonly closing: number;
}

export const defaultDeadlines: Deadlines = {
  headers: 10_000,
  request: 30_000,
  keepAlive: 72_000,
  idle: 120_000,
  tcpProbe: 4_000,
  checkInterval: 2_000,
  closing: 10_000,
};

/** This many unanswered TCP probes close a connection. Node before 24 sends ten, one per second. */
const tcpProbes = { everyMs: 1_000, count: 5 };

/** The server under Fastify: plain HTTP or TLS, its certificate, and its deadlines. */
export interface Transport {
  readonly scheme: 'http' | 'https';
  readonly deadlines: Deadlines;
  serverFactory(handler: RequestListener): http.Server;
  readonly connections: ConnectionTracker;
  /** Reloads the certificate and returns its path; null without TLS. An error changes nothing. */
  reload(): string | null;
  /** The certificate for new connections; null without TLS. */
  certificate(): ServedCertificate | null;
  closeAllConnections(): void;
}

/** Less than a TLS record (16 KiB), so that one packet contains the headers that are too large. */
const maxHeaderSize = 15.5 * 1024;

/** Reads certificate and key, and throws if they are unusable. @param tls null for plain http */
export function createTransport(tls: TlsFiles | null, deadlines: Deadlines): Transport {
  const options = {
    maxHeaderSize,
    keepAliveTimeout: deadlines.keepAlive,
    headersTimeout: deadlines.headers,
    requestTimeout: deadlines.request,
    connectionsCheckingInterval: deadlines.checkInterval,
  };
  let identity = tls && readTlsFiles(tls);
  const tlsOptions = ({ cert, key }: TlsIdentity) => ({ cert, key, minVersion: 'TLSv1.2' as const });
  const connections = new ConnectionTracker();
  // A name with several addresses, such as localhost, has one server per address.
  const servers: (http.Server | https.Server)[] = [];
  return {
    scheme: tls ? 'https' : 'http',
    deadlines,
    connections,
    serverFactory(handler) {
      const server = identity
        ? https.createServer({ ...options, ...tlsOptions(identity), handshakeTimeout: deadlines.headers }, handler)
        : http.createServer(options, handler);
      // Closes a connection whose other end has lost power, even if nothing is sent on it.
      server.on('connection', (socket: Socket) =>
        socket.setKeepAlive(true, deadlines.tcpProbe, tcpProbes.everyMs, tcpProbes.count),
      );
      servers.push(server);
      nameSocketClients(server);
      connections.track(server);
      return server.setTimeout(deadlines.idle);
    },
    reload() {
      identity = tls && readTlsFiles(tls);
      for (const server of servers) {
        if (identity && server instanceof https.Server) server.setSecureContext(tlsOptions(identity));
      }
      return tls?.certificate ?? null;
    },
    certificate: () => identity?.served ?? null,
    closeAllConnections: () => {
      for (const server of servers) server.closeAllConnections();
    },
  };
}

/**
 * Closing waits for unfinished replies, up to their deadline. Long polls end, unused connections
 * drop, and a request meanwhile, such as a load balancer's /readyz, gets a 503.
 */
export function closePromptly(
  app: App,
  notifiers: readonly ChangeNotifier[],
  { connections, closeAllConnections, deadlines }: Transport,
): void {
  let closing = false;
  let deadline: NodeJS.Timeout | undefined;
  app.addHook('onRequest', async () => {
    if (closing) throw new Unavailable('the control plane is shutting down');
  });
  app.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close');
  });
  app.addHook('preClose', async () => {
    closing = true;
    for (const notifier of notifiers) notifier.close();
    deadline = setTimeout(closeAllConnections, deadlines.closing);
    await connections.end();
  });
  app.addHook('onClose', async () => clearTimeout(deadline));
}

/** Replies to requests that Fastify does not see: too slow, too large headers, or not HTTP. */
export function createClientErrorHandler(onRefusal: (status: number) => void) {
  return (error: NodeJS.ErrnoException & { readonly rawPacket?: unknown }, socket: Socket) => {
    // The client has disconnected.
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const { status, message } = refusals[error.code ?? ''] ?? notHttp;
    onRefusal(status);
    const clearsCookies = status === 431 && hasOversizedCookies(error.rawPacket);
    if (socket.writable) socket.write(clearsCookies ? cookiesReply : formatReply(status, message));
    socket.destroy(error);
  };
}

const refusals: Readonly<Record<string, { status: number; message: string }>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'the request took too long to arrive' },
  HPE_HEADER_OVERFLOW: { status: 431, message: 'the headers of the request are larger than 15.5 KiB' },
};
const notHttp = { status: 400, message: 'this is no HTTP request' };

function formatReply(status: number, message: string, headers: readonly string[] = []): string {
  const body = JSON.stringify({ message });
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    ...headers,
    '',
    body,
  ].join('\r\n');
}

const cookiesReply = formatReply(
  431,
  'the cookies of this host name are larger than 12 KiB, so the request is not read; load the page again, and if that does not help, delete the cookies of this host name in the browser',
  // Browsers respect this header over https and on loopback.
  ['Clear-Site-Data: "cookies"'],
);

const leastBytes = 12 * 1024;

/**
 * True if cookies, which any server of the host name can set, are too large. False for a long URL,
 * to which any page can link: it must not delete the cookies of a browser.
 * @param packet the bytes in which the headers became too large, from the request line on
 */
function hasOversizedCookies(packet: unknown): boolean {
  if (!Buffer.isBuffer(packet)) return false;
  const [, ...headers] = packet.toString('latin1').split('\r\n');
  return headers.some((line) => /^cookie:/i.test(line) && line.length >= leastBytes);
}
