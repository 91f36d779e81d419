import http, { type RequestListener, STATUS_CODES } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { Unavailable } from '../errors.ts';
import type { ChangeNotifier } from '../push/change-notifier.ts';
import type { App } from './app.ts';
import { ConnectionTracker } from './connections.ts';
import { hasOversizedCookies } from './oversized-cookies.ts';
import { readTlsFiles, type ServedCertificate, type TlsFiles, type TlsIdentity } from './tls-files.ts';
import { nameSocketClients } from './unix-socket.ts';

/** How long a client may take, in milliseconds. */
export interface Deadlines {
  /** To send the headers of a request, from its first byte or, on a new connection, from its beginning. */
  readonly headers: number;
  /** To send a request with its body. */
  readonly request: number;
  /** To send the next request on a connection. Longer than load balancers keep one, so that none uses a connection that just closed. */
  readonly keepAlive: number;
  /** Without traffic on a connection; longer than the longest long poll, which has none. */
  readonly idle: number;
  /** Before TCP probes a connection without traffic. */
  readonly tcpProbe: number;
  /** How often the first two are checked. */
  readonly checkInterval: number;
  /** To finish what is under way when the control plane is closed. */
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

/** Unanswered probes of TCP, one a second, that close a connection. Node before 24 sends ten, one a second. */
const tcpProbes = { everyMs: 1_000, count: 5 };

/** The server under Fastify: plain HTTP or TLS, its certificate, and its deadlines. */
export interface Transport {
  readonly scheme: 'http' | 'https';
  readonly deadlines: Deadlines;
  serverFactory(handler: RequestListener): http.Server;
  /** What is under way on the connections of all its servers. */
  readonly connections: ConnectionTracker;
  /**
   * Reads certificate and key again, for connections from now on, and gives the path of the certificate; null without TLS. When they
   * cannot be used, it throws and nothing changes.
   */
  reload(): string | null;
  /** What new connections receive; null without TLS. */
  certificate(): ServedCertificate | null;
  /** Ends every connection, whatever is under way on it. */
  closeAllConnections(): void;
}

/** Less than a TLS record (16 KiB): what makes headers too large is then in the first one. */
const maxHeaderSize = 15.5 * 1024;

/** Reads certificate and key, and throws when they cannot be used. @param tls null for plain http */
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
  // A name with several addresses, as localhost, is a server for each.
  const servers: (http.Server | https.Server)[] = [];
  return {
    scheme: tls ? 'https' : 'http',
    deadlines,
    connections,
    serverFactory(handler) {
      const server = identity
        ? https.createServer({ ...options, ...tlsOptions(identity), handshakeTimeout: deadlines.headers }, handler)
        : http.createServer(options, handler);
      // A connection whose other end has lost power is closed, although nothing is sent on it.
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
 * Makes closing wait for the replies under way, up to their deadline. Long polls end, a connection without a request is dropped, and one
 * with its last reply is closed after it. A request that comes meanwhile, such as /readyz of a load balancer, gets a 503.
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

/**
 * Answers, on the bare connection, what came too slowly, with too large headers, or is no HTTP; then drops the connection. Fastify runs
 * no hook for it: `onRefusal` gets the status.
 */
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
  // Browsers follow it over https and on loopback.
  ['Clear-Site-Data: "cookies"'],
);
