import * as z from 'zod';

/** Every successful reply carries its resource, or its list of resources, in `data`. */
export const reply = <Data extends z.ZodType>(data: Data) => z.object({ data });

/** The body of every refusal: one sentence, and on a 422 the rules each field broke. */
export const Refusal = z
  .object({
    message: z.string(),
    errors: z.record(z.string(), z.array(z.string())).optional(),
  })
  .meta({ id: 'Refusal' });
export type Refusal = z.infer<typeof Refusal>;
