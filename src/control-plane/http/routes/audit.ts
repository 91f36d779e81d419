import * as z from 'zod';
import { AuditEntry, AuditLink, mostSearchWords, searchWords } from '../../../contract/audit.ts';
import { page, reply } from '../../../contract/reply.ts';
import { instant, text } from '../../../contract/text.ts';
import { administrators } from '../../domain/caller.ts';
import { readAudit } from '../../service/audit.ts';
import { readLinks } from '../../service/audit-chain.ts';
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

const maxLinks = 1_000;

const Links = z.object({
  after: digits(z.int().min(0)).optional().meta({
    description: 'Only links after the one with this number; 0, as without it, for the first ones.',
  }),
  limit: digits(z.int().min(1).max(maxLinks))
    .optional()
    .meta({ description: `The maximum number of links; default: ${maxLinks}.` }),
});

export function addAuditRoutes(app: App, context: Context): void {
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

  app.route({
    method: 'GET',
    url: '/api/audit/chain',
    config: { access: administrators },
    schema: {
      operationId: 'readAuditChain',
      summary: 'The audit as a chain, oldest first, to verify it',
      description: [
        'The digest is SHA-256 of the entry without chain, as JSON without spaces, with the names of each object sorted. The hash is SHA-256',
        'of the hash of the link before (empty for the first), the number and the digest, each with a line feed. If the first link has a',
        'number other than 1, retention removed the links before it: its hash is the anchor. An entry is chained about a second after it',
        'was made. For more links, request again with after set to the number of the last one; none come after the last.',
      ].join('\n'),
      querystring: Links,
      response: { 200: reply(z.array(AuditLink)) },
    },
    handler: async (request) => {
      const { after = 0, limit = maxLinks } = request.query;
      return { data: await readLinks(context, userOf(request), after, limit) };
    },
  });
}

const toUtc = (instant: string | undefined) => (instant === undefined ? undefined : new Date(instant).toISOString());
