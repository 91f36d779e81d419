import * as z from 'zod';
import { AuditEntry, mostSearchWords, searchWords } from '../../../contract/audit.ts';
import { page } from '../../../contract/reply.ts';
import { instant, text } from '../../../contract/text.ts';
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
  search: text(100)
    .refine((value) => searchWords(value).length <= mostSearchWords, {
      error: `must have at most ${mostSearchWords} different words`,
    })
    .optional()
    .meta({
      description: `Only entries that have each of these words, at most ${mostSearchWords}, in the names of actor and target, the action, the address or the details. The case of ASCII letters is ignored.`,
    }),
  action: text(64).optional().meta({
    description: 'Only entries of this action, such as peer.enroll, or of all that begin with it, such as peer.',
  }),
  since: instant.optional().meta({ description: 'Only entries of this instant or later.' }),
  until: instant.optional().meta({ description: 'Only entries before this instant.' }),
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
      description: `For older entries, request again with before set to the id of the last entry of the reply.\n${paging}`,
      querystring: Which,
      response: { 200: page(AuditEntry) },
    },
    handler: async (request) => {
      const { page, per_page, limit, before, search, action, since, until } = request.query;
      const asked = { page, per_page: per_page ?? limit, after: before };
      const filter = { search, action, since: toUtc(since), until: toUtc(until) };
      const entries = await readAudit(context, userOf(request), filter, readSlice(asked));
      const repeated = Object.entries(filter).filter((each): each is [string, string] => each[1] !== undefined);
      const encoded = repeated.map(([name, value]) => [name, encodeURIComponent(value)] as const);
      return toPageReply(entries, asked, (id) => ({ ...Object.fromEntries(encoded), before: id }));
    },
  });
}

const toUtc = (instant: string | undefined) => (instant === undefined ? undefined : new Date(instant).toISOString());
