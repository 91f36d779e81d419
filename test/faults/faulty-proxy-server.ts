/**
 * A proxy in front of a control plane that injects faults: `node faulty-proxy-server.ts ADDRESS PORT TARGET-URL`. Its
 * orders are faults. A request without an answer when an order comes is handled again, with the new fault; an answer
 * that has begun breaks off. It prints a line for each request, without credentials.
 *
 * @module
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { followOrders } from '../lab/orders.ts';
import { type Exchange, inject } from './faulty-replies.ts';
import type { ProxyFault } from './proxy-fault.ts';

const [address, port, target = ''] = process.argv.slice(2);
const open = new Set<Exchange>();
let fault: ProxyFault = { kind: 'pass' };

const server = createServer(async (request, response) => {
  const { method = '', url = '', headers } = request;
  const body = await buffer(request).catch(() => null);
  if (body === null) return;
  const exchange: Exchange = { target, method, url, headers, body, response, end: new AbortController() };
  open.add(exchange);
  response.on('close', () => {
    open.delete(exchange);
    exchange.end.abort();
  });
  handle(exchange);
});
await listen();
process.stdout.write('listening\n');

await followOrders<ProxyFault>(async (next) => {
  const listening = fault.kind !== 'refuse';
  fault = next;
  if (fault.kind === 'refuse') {
    server.close();
    server.closeAllConnections();
  } else if (!listening) await listen();
  for (const exchange of open) {
    exchange.end.abort();
    exchange.end = new AbortController();
    if (exchange.response.headersSent) reset(exchange.response.socket);
    else handle(exchange);
  }
});

function handle(exchange: Exchange): void {
  const { method, url, headers, response, end } = exchange;
  // The description of the service is always available.
  if (url === '/docs/api/openapi.json')
    return void inject(exchange, { kind: 'pass' }).catch(() => reset(response.socket));
  const headersRead = ['if-none-match', 'prefer'].map((name) => `${name}=${headers[name] ?? 'none'}`);
  process.stdout.write(`request ${fault.kind} ${method} ${url} ${headersRead.join(' ')}\n`);
  inject(exchange, fault).catch((error: Error) => {
    if (end.signal.aborted) return;
    process.stderr.write(`${error.stack}\n`);
    reset(response.socket);
  });
}

async function listen(): Promise<void> {
  server.listen(Number(port), address);
  await once(server, 'listening');
}

function reset(socket: Socket | null): void {
  socket?.resetAndDestroy();
}
