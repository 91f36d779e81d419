import * as z from 'zod';
import { AuditEntry } from '../../../contract/audit.ts';
import { page } from '../../../contract/reply.ts';
import { administrators } from '../../domain/caller.ts';
import { readAudit } from '../../service/audit.ts';
import type { Context } from '../../service/context.ts';
import { type App, userOf } from '../app.ts';
import { PageQuery, paging, readSlice, toPageReply } from './paging.ts';
import { digits } from './parts.ts';

const Which = PageQuery.omit({ after: true }).extend({
  before: digits(z.int().min(1)).optional().meta({ description: 'Only entries older than the one with this id.' }),
  after: z
    .unknown()
    .refine((value) => value === undefined, { error: 'is not for the audit, which is newest first; use before' })
    .optional()
    .meta({ description: 'Refused: the audit is newest first.' }),
  limit: digits(z.int().min(1).max(200)).optional().meta({ description: 'An older name of per_page.' }),
});

export function addAuditRoute(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/api/audit',
    config: { access: administrators },
    schema: {
      operationId: 'readAudit',
      summary: 'What was done in the organization, newest first',
      description: `For the entries before those of a reply, ask again with before, set to the id of its last entry.\n${paging}`,
      querystring: Which,
      response: { 200: page(AuditEntry) },
    },
    handler: async (request) => {
      const { page, per_page, limit, before } = request.query;
      const asked = { page, per_page: per_page ?? limit, after: before };
      const entries = await readAudit(context, userOf(request), readSlice(asked));
      return toPageReply(entries, asked, (id) => ({ before: id }));
    },
  });
}
