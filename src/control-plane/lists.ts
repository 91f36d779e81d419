import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { page } from '../contract/reply.ts';
import { ownBytes } from './own-bytes.ts';

/** Sends a page of a list; `name` says which one, and whose. */
export type SendList = <Item extends z.ZodType>(
  response: FastifyReply,
  name: string,
  item: Item,
  body: z.output<ReturnType<typeof page<Item>>>,
) => FastifyReply;

const mostNames = 1_000;

/** Lists that are the same text are one in memory, however many callers have not read theirs yet. It keeps none that nobody is sent. */
export function createLists(): SendList {
  const latest = new Map<string, WeakRef<Buffer>>();
  return (response, list, item, body) => {
    const bytes = ownBytes(JSON.stringify(z.encode(page(item), body)));
    const name = `${list} ${body.links.next} ${body.meta.current_page}`;
    const known = latest.get(name)?.deref();
    const isSame = known?.equals(bytes) ?? false;
    if (!isSame) {
      if (latest.size >= mostNames) latest.clear();
      latest.set(name, new WeakRef(bytes));
    }
    return response.type('application/json; charset=utf-8').send(isSame ? known : bytes);
  };
}
