import * as z from 'zod';
import { DeviceCodeError } from './device-code.ts';

/** Every successful reply has its resource, or its list of resources, in `data`. */
export const reply = <Data extends z.ZodType>(data: Data) => z.object({ data });

const pageLinks = z.object({
  next: z.string().nullable().meta({
    description:
      'The next page, relative to this request; null at the end. Entries that stay are neither left out nor repeated.',
  }),
});

const pageMeta = z.object({
  per_page: z.int().min(1).meta({ description: 'How many entries a page has at most.' }),
  current_page: z.int().min(1).optional().meta({ description: 'Absent in a page that links.next led to.' }),
  last_page: z.int().min(1).optional().meta({ description: 'Absent if total is present.' }),
  total: z.int().min(0).optional().meta({
    description: 'How many entries there are: absent in a page that links.next led to, and beyond 10,000 entries.',
  }),
});

/** A page of a list. If `links.next` is null, the list ends here. */
export const page = <Item extends z.ZodType>(item: Item) =>
  z.object({ data: z.array(item), links: pageLinks, meta: pageMeta });

/** The body of a refusal: a sentence, broken rules by field (422), or the deleted network (410). */
export const Refusal = z
  .object({
    message: z.string(),
    errors: z.record(z.string(), z.array(z.string())).optional(),
    deleted: z
      .object({
        id: z.int().min(1),
        nonce: z.string().meta({ maxLength: 128, description: 'The nonce of the network, as in its maps.' }),
      })
      .optional()
      .meta({ description: 'In a 410: the network of the calling peer, which was deleted.' }),
    error: DeviceCodeError.optional().meta({ description: 'In a 400: why a device code gives no session (RFC 8628).' }),
  })
  .meta({ id: 'Refusal' });
export type Refusal = z.infer<typeof Refusal>;
