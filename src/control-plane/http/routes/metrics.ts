import * as z from 'zod';
import { Refusal } from '../../../contract/reply.ts';
import { Forbidden } from '../../errors.ts';
import { type App, isDirect } from '../app.ts';
import type { ServerMetrics } from '../metrics.ts';

/** Why the metrics are not at the address of the API; null if loopback clients get them there. */
type Elsewhere = 'own address' | 'behind a proxy' | null;

const refusals: Readonly<Record<NonNullable<Elsewhere>, string>> = {
  'own address': 'the metrics of this control plane have an address of their own, which --metrics names',
  'behind a proxy':
    'with --trust-proxy, the metrics are not served here, because a proxy on this machine would open them to its clients; serve them at an address of their own with --metrics HOST:PORT',
};

export function addMetricsRoute(app: App, metrics: ServerMetrics, elsewhere: Elsewhere): void {
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'anyone', isHealthCheck: true },
    schema: {
      operationId: 'readMetrics',
      summary: 'What the control plane counts, in the text format of Prometheus',
      description: [
        'For clients at a loopback address, and not through a proxy. With --metrics HOST:PORT it is served to',
        'all clients of that address instead.',
      ].join('\n'),
      response: {
        200: { description: 'The metrics.', content: { 'text/plain': { schema: z.string() } } },
        403: {
          description: 'The caller is not on the same machine.',
          content: { 'application/json': { schema: Refusal } },
        },
      },
    },
    handler: async (request, response) => {
      if (elsewhere !== null) throw new Forbidden(refusals[elsewhere]);
      if (!isDirect(request)) {
        throw new Forbidden(
          'metrics are served to loopback addresses only; the operator can serve them at another address with --metrics HOST:PORT',
        );
      }
      return response.type(metrics.contentType).send(await metrics.format());
    },
  });
}
