import type { Socket } from 'node:net';
import type { App } from './app.ts';
import type { Waiters } from './waiters.ts';

/**
 * Makes closing wait for the requests under way and for nothing else: waits end, a connection that never carried a
 * request is dropped, and one that carries its last reply is not kept for another.
 */
export function closePromptly(app: App, waiters: Waiters): void {
  // Node takes a connection without a first request for a busy one, and would wait for it.
  const unused = new Set<Socket>();
  let closing = false;
  app.server.on('connection', (socket: Socket) => {
    if (closing) socket.destroy();
    else unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  app.server.on('request', ({ socket }) => unused.delete(socket));
  app.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close');
  });
  app.addHook('preClose', async () => {
    closing = true;
    waiters.close();
    for (const socket of unused) socket.destroy();
  });
}
