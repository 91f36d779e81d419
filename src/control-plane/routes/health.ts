import * as z from 'zod';
import type { App } from '../app.ts';

export function addHealthRoute(app: App): void {
  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'anyone' },
    schema: {
      operationId: 'checkHealth',
      summary: 'Answers while the process lives',
      response: { 200: z.object({ status: z.literal('ok') }) },
    },
    handler: async () => ({ status: 'ok' as const }),
  });
}
