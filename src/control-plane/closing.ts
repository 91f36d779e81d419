import type { App } from './app.ts';
import { Unavailable } from './errors.ts';
import type { Transport } from './transport.ts';
import type { Waiters } from './waiters.ts';

/**
 * Makes closing wait until the replies under way are sent, up to their deadline, and for nothing else: waits end, a connection that
 * never carried a request is dropped, one that carries its last reply is not kept for another, and what is asked on it
 * nevertheless, by a balancer at /readyz say, is told that this one is going.
 */
export function closePromptly(app: App, waiters: Waiters, { traffic, cut, deadlines }: Transport): void {
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
    waiters.close();
    deadline = setTimeout(cut, deadlines.closing);
    await traffic.end();
  });
  app.addHook('onClose', async () => clearTimeout(deadline));
}
