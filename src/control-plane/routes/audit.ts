import * as z from 'zod';
import { AuditEntry } from '../../contract/audit.ts';
import { reply } from '../../contract/reply.ts';
import { type App, userOf } from '../app.ts';
import { administrators } from '../caller.ts';
import { readAudit } from '../service/audit.ts';
import type { Context } from '../service/context.ts';
import { digits } from './parts.ts';

const Page = z.object({
  before: digits(z.int().min(1)).optional().meta({ description: 'Only entries older than the one with this id.' }),
  limit: digits(z.int().min(1).max(200)).default(100),
});

export function addAuditRoute(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/api/audit',
    config: { access: administrators },
    schema: {
      operationId: 'readAudit',
      summary: 'What was done in the organization, newest first',
      description: 'For the entries before those of a reply, ask again with before, set to the id of its last entry.',
      querystring: Page,
      response: { 200: reply(z.array(AuditEntry)) },
    },
    handler: async (request) => ({ data: await readAudit(context, userOf(request), request.query) }),
  });
}
