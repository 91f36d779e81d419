import http from 'node:http';
import { fastify } from 'fastify';
import { CannotListen } from '../errors.ts';
import type { Metrics } from './metrics.ts';
import type { Deadlines } from './transport.ts';

/** An address to listen on; port 0 takes any free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Serves the metrics, and nothing else, in plain HTTP to all clients of an address. */
export async function serveMetrics(metrics: Metrics, { host, port }: ListenAddress, deadlines: Deadlines) {
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
