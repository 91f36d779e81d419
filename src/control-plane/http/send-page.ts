import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { page } from '../../contract/reply.ts';
import { unpooledBuffer } from '../push/serialized-network.ts';

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
