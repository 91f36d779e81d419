import * as z from 'zod';
import { InvalidRequest } from '../errors.ts';
import type { Page, Slice } from '../store/page.ts';
import { digits } from './parts.ts';

/** The entries of a reply at most, and of one that does not name another number. */
const mostEntries = 1_000;
/** Of a page that is asked for by its number, as the contract has it for files. */
const usualEntries = 25;
/** The entries before a page that is asked for by its number: they are read too. */
const mostSkipped = 100_000;

const positive = digits(z.int().min(1)).optional();

/** The pages of a list, in a query. */
export const PageQuery = z.object({
  page: positive.meta({
    description: `The number of a page. It counts the entries as they are now, up to ${mostSkipped} entries; links.next has no such end.`,
  }),
  per_page: digits(z.int().min(1).max(mostEntries))
    .optional()
    .meta({
      description: `How many entries a page has: ${usualEntries} where page is given, else ${mostEntries}.`,
    }),
  after: positive.meta({ description: 'Only entries after the one with this id, as links.next asks for them.' }),
});

/** What a description says of a list that takes {@link PageQuery}. */
export const paging = `Without parameters the whole list comes, up to ${mostEntries} entries; links.next is the rest of a longer one.`;

/** A page as it is asked for: by its number, or by the entry before it. */
interface Asked {
  readonly page?: number | undefined;
  readonly per_page?: number | undefined;
  readonly after?: number | undefined;
}

/** The part of a list that a query asks for. */
export function readSlice({ page, per_page, after }: Asked): Slice {
  const limit = per_page ?? (page === undefined ? mostEntries : usualEntries);
  const skip = ((page ?? 1) - 1) * limit;
  if (skip > mostSkipped) {
    const rule = `must be at most ${Math.floor(mostSkipped / limit) + 1} with ${limit} entries a page; follow links.next for more`;
    throw new InvalidRequest({ page: [rule] });
  }
  return { after: after ?? null, skip, limit };
}

/** The reply with a page. `toNext` is what the next page is asked for with, beside its size. */
export function showPage<Entry>(
  { entries, next, total }: Page<Entry>,
  asked: Asked,
  toNext: (id: number) => Readonly<Record<string, string | number>> = (id) => ({ after: id }),
) {
  const { limit: per_page, after } = readSlice(asked);
  const query = next === null ? null : Object.entries({ per_page, ...toNext(next) });
  const counted = total === null ? {} : { last_page: Math.max(1, Math.ceil(total / per_page)), total };
  return {
    data: [...entries],
    links: { next: query && `?${query.map((each) => each.join('=')).join('&')}` },
    meta: { per_page, ...(after === null && { current_page: asked.page ?? 1, ...counted }) },
  };
}
