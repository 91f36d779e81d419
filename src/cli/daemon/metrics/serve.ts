import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { MetricsFailed } from '../../../core/errors/index.ts';
import { isLoopback } from '../../../core/net/endpoint.ts';
import type { ListenAddress } from '../../input/listen-address.ts';

/** Milliseconds: the deadlines of a request, and the idle time until a connection is closed. */
const deadlines = { headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 1_000 };
const silence = 60_000;
/** Enough for a few scrapers. */
const mostConnections = 32;

export interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

interface ServedPage {
  readonly contentType: string;
  format(): Promise<string>;
}

/** Serves only /metrics over plain http, without authentication. @throws MetricsFailed */
export async function serveMetrics(address: ListenAddress, page: ServedPage): Promise<MetricsServer> {
  const server = http.createServer({ ...deadlines, maxHeaderSize: 8_192 }, (request, response) => {
    void answer(request, response, address, page);
  });
  server.setTimeout(silence);
  server.maxConnections = mostConnections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  }).catch((error: NodeJS.ErrnoException) => {
    throw new MetricsFailed(address.host, address.port, error);
  });
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port;
  const host = isIP(address.host) === 6 ? `[${address.host}]` : address.host;
  return { url: `http://${host}:${port}/metrics`, close: () => close(server) };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  at: ListenAddress,
  page: ServedPage,
): Promise<void> {
  const say = (status: number, text: string, type = 'text/plain; charset=utf-8') => {
    response.writeHead(status, { 'content-type': type, 'x-content-type-options': 'nosniff' }).end(text);
  };
  // A web page could resolve its own name to this loopback address (DNS rebinding).
  if (isLoopback(at.host) && !isOwnName(request.headers.host))
    return say(403, 'request the address itself, or localhost\n');
  if (request.url?.split('?')[0] !== '/metrics') return say(404, 'metrics are at /metrics\n');
  if (request.method !== 'GET' && request.method !== 'HEAD') return say(405, 'metrics can only be read\n');
  try {
    say(200, await page.format(), page.contentType);
  } catch {
    // The client is not authenticated, so only the log has the reason.
    say(500, 'the status cannot be read; see the log of "cpn run"\n');
  }
}

function isOwnName(header = ''): boolean {
  const name = header.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  return name === 'localhost' || isIP(name) !== 0;
}

function close(server: http.Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
