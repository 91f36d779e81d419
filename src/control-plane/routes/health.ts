import * as z from 'zod';
import { Refusal } from '../../contract/reply.ts';
import type { App } from '../app.ts';
import type { Context } from '../service/context.ts';
import { createReadinessCheck } from '../service/readiness.ts';

export function addHealthRoutes(app: App, context: Context): void {
  const checkReadiness = createReadinessCheck(context);
  let isReady = true;

  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'anyone', isHealthCheck: true },
    schema: {
      operationId: 'checkHealth',
      summary: 'Answers while the process lives',
      response: { 200: z.object({ status: z.literal('ok') }) },
    },
    handler: async () => ({ status: 'ok' as const }),
  });

  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'anyone', isHealthCheck: true },
    schema: {
      operationId: 'checkReadiness',
      summary:
        'Answers with 200 while requests can be served: the database answers and can be written, and nobody is shutting this down',
      response: { 200: z.object({ status: z.literal('ready') }), 503: Refusal },
    },
    handler: async ({ log }) => {
      const trouble = await checkReadiness().then(
        () => null,
        (error: Error) => error,
      );
      if (trouble !== null && isReady) log.warn({ err: trouble.cause ?? trouble }, 'not ready');
      if (trouble === null && !isReady) log.info('ready again');
      isReady = trouble === null;
      if (trouble !== null) throw trouble;
      return { status: 'ready' as const };
    },
  });
}
