import http, { type RequestListener } from 'node:http';
import https from 'node:https';
import { readTlsFiles, type TlsFiles } from './tls-files.ts';
import { Traffic } from './traffic.ts';

/** How long a client may take, in milliseconds. */
export interface Deadlines {
  /** To send the headers of a request, from its first byte or, on a new connection, from its beginning. */
  readonly headers: number;
  /** To send a request with its body. */
  readonly request: number;
  /** To ask the next thing on a connection; longer than balancers keep one, so that none asks on one just closed. */
  readonly next: number;
  /** While nothing moves, to take a reply; longer than the longest wait for a change, in which nothing moves either. */
  readonly silence: number;
  /** How often the first two are looked at. */
  readonly check: number;
  /** To finish what is under way when the control plane is closed. */
  readonly closing: number;
}

export const defaultDeadlines: Deadlines = {
  headers: 10_000,
  request: 30_000,
  next: 72_000,
  silence: 120_000,
  check: 2_000,
  closing: 10_000,
};

/** The server that fastify asks for: its kind, its certificate, and its limits for who connects. */
export interface Transport {
  readonly scheme: 'http' | 'https';
  readonly deadlines: Deadlines;
  serverFactory(handler: RequestListener): http.Server;
  /** What is under way on the connections of all its servers. */
  readonly traffic: Traffic;
  /**
   * Reads certificate and key again, for connections from now on, and gives the path of the certificate; null without TLS. When they
   * cannot be used, it throws and nothing changes.
   */
  reload(): string | null;
  /** Ends every connection, whatever is under way on it. */
  cut(): void;
}

const maxHeaderSize = 16 * 1024;

/** Reads certificate and key, and throws when they cannot be used. @param tls null for plain http */
export function createTransport(tls: TlsFiles | null, deadlines: Deadlines): Transport {
  const options = {
    maxHeaderSize,
    keepAliveTimeout: deadlines.next,
    headersTimeout: deadlines.headers,
    requestTimeout: deadlines.request,
    connectionsCheckingInterval: deadlines.check,
  };
  const readIdentity = () => tls && { ...readTlsFiles(tls), minVersion: 'TLSv1.2' as const };
  let identity = readIdentity();
  const traffic = new Traffic();
  // A name with several addresses, as localhost, is a server for each.
  const servers: (http.Server | https.Server)[] = [];
  return {
    scheme: tls ? 'https' : 'http',
    deadlines,
    traffic,
    serverFactory(handler) {
      const server = identity
        ? https.createServer({ ...options, ...identity, handshakeTimeout: deadlines.headers }, handler)
        : http.createServer(options, handler);
      servers.push(server);
      traffic.watch(server);
      return server.setTimeout(deadlines.silence);
    },
    reload() {
      identity = readIdentity();
      for (const server of servers) {
        if (identity && server instanceof https.Server) server.setSecureContext(identity);
      }
      return tls?.certificate ?? null;
    },
    cut: () => {
      for (const server of servers) server.closeAllConnections();
    },
  };
}
