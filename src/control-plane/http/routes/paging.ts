import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { page } from '../../../contract/reply.ts';
import { InvalidRequest } from '../../errors.ts';
import { unpooledBuffer } from '../../push/serialized-network.ts';
import type { Slice, StoredPage } from '../../store/page.ts';
import { digits } from './parts.ts';

/** The maximum of entries per reply, and the default without a page number. */
const maxEntries = 1_000;
/** The default for a page by number, the same as the contract has for files. */
const defaultEntries = 25;
/** The maximum of entries before a page by number, because they are read too. */
const maxSkipped = 100_000;

const positive = digits(z.int().min(1)).optional();

export const PageQuery = z.object({
  page: positive.meta({
    description: `The number of a page. It counts the entries as they are now, up to ${maxSkipped} entries; links.next has no such end.`,
  }),
  per_page: digits(z.int().min(1).max(maxEntries))
    .optional()
    .meta({
      description: `The number of entries on a page: ${defaultEntries} if page is given, else ${maxEntries}.`,
    }),
  after: positive.meta({ description: 'Only entries after the one with this id, as in links.next.' }),
});

/** The description of a list that accepts {@link PageQuery}. */
export const paging = `Without parameters, the reply has the whole list, up to ${maxEntries} entries; links.next leads to the rest.`;

/** A page, by its number or by the entry before it. */
interface PageRequest {
  readonly page?: number | undefined;
  readonly per_page?: number | undefined;
  readonly after?: number | undefined;
}

export function readSlice({ page, per_page, after }: PageRequest): Slice {
  const limit = per_page ?? (page === undefined ? maxEntries : defaultEntries);
  const skip = ((page ?? 1) - 1) * limit;
  if (skip > maxSkipped) {
    const rule = `must be at most ${Math.floor(maxSkipped / limit) + 1} with ${limit} entries a page; follow links.next for more`;
    throw new InvalidRequest({ page: [rule] });
  }
  return { after: after ?? null, skip, limit };
}

/** The reply with a page. `toNext` creates the query of the next page, without its size. */
export function toPageReply<Entry>(
  { entries, next, total }: StoredPage<Entry>,
  asked: PageRequest,
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

/** Sends a page of a list. `name` identifies the list and its organization or network. */
export type SendPage = <Item extends z.ZodType>(
  response: FastifyReply,
  name: string,
  item: Item,
  body: z.output<ReturnType<typeof page<Item>>>,
) => FastifyReply;

const maxNames = 1_000;

/** Replies with the same page share one buffer, which is collected once no reply sends it. */
export function createPageSender(): SendPage {
  const latest = new Map<string, WeakRef<Buffer>>();
  return (response, list, item, body) => {
    const bytes = unpooledBuffer(JSON.stringify(z.encode(page(item), body)));
    const name = `${list} ${body.links.next} ${body.meta.current_page}`;
    const shared = latest.get(name)?.deref();
    const isSame = shared?.equals(bytes) ?? false;
    if (!isSame) {
      if (latest.size >= maxNames) latest.clear();
      latest.set(name, new WeakRef(bytes));
    }
    return response.type('application/json; charset=utf-8').send(isSame ? shared : bytes);
  };
}
