import * as z from 'zod';
import { Refusal } from '../../../contract/reply.ts';
import type { Context } from '../../service/context.ts';
import { createReadinessCheck } from '../../service/monitoring.ts';
import type { App } from '../app.ts';

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
        '200 while requests can be served: the database answers and can be written, changes of other processes arrive, and the control plane is not shutting down',
      response: { 200: z.object({ status: z.literal('ready') }), 503: Refusal },
    },
    handler: async ({ log }) => {
      const failure = await checkReadiness().then(
        () => null,
        (error: Error) => error,
      );
      if (failure !== null && isReady) log.warn({ err: failure.cause ?? failure }, 'not ready');
      if (failure === null && !isReady) log.info('ready again');
      isReady = failure === null;
      if (failure !== null) throw failure;
      return { status: 'ready' as const };
    },
  });
}
