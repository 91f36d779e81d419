import type { Socket } from 'node:net';
import type { App } from './app.ts';
import { Unavailable } from './errors.ts';
import type { Transport } from './transport.ts';
import type { Waiters } from './waiters.ts';

/**
 * Makes closing wait for the requests under way, up to their deadline, and for nothing else: waits end, a connection that
 * never carried a request is dropped, one that carries its last reply is not kept for another, and what is asked on it
 * nevertheless, by a balancer at /readyz say, is told that this one is going.
 */
export function closePromptly(app: App, waiters: Waiters, transport: Transport): void {
  // Node takes a connection without a first request for a busy one, and would wait for it. A request on TLS has another
  // socket than the connection that it came by; both have the same address and port.
  const unused = new Map<string, Socket>();
  let closing = false;
  let deadline: NodeJS.Timeout | undefined;
  app.server.on('connection', (socket: Socket) => {
    const name = nameOf(socket);
    if (closing) socket.destroy();
    else unused.set(name, socket);
    socket.once('close', () => {
      if (unused.get(name) === socket) unused.delete(name);
    });
  });
  app.server.on('request', ({ socket }) => unused.delete(nameOf(socket)));
  app.addHook('onRequest', async () => {
    if (closing) throw new Unavailable('the control plane is shutting down');
  });
  app.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close');
  });
  app.addHook('preClose', async () => {
    closing = true;
    waiters.close();
    for (const socket of unused.values()) socket.destroy();
    deadline = setTimeout(() => transport.cut(), transport.deadlines.closing);
  });
  app.addHook('onClose', async () => clearTimeout(deadline));
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
