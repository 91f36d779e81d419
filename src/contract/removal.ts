import * as z from 'zod';
import { identifier, instant, nameShown } from './text.ts';

/** A host that may still reach a peer that is no longer in the map. */
export const PendingHost = z
  .object({
    id: identifier,
    name: nameShown,
    acknowledged_revision: z.int().min(0).nullable().meta({
      description: 'A revision that the host has applied; it may have applied later ones. Null where none is known.',
    }),
    last_seen: instant.nullable().meta({ description: 'The last request of the host, to a minute.' }),
  })
  .meta({ id: 'PendingHost' });
export type PendingHost = z.infer<typeof PendingHost>;

/** Who has applied the last removal in a network. */
export const RemovalStatus = z
  .object({
    revision: z.int().min(0).nullable().meta({
      description:
        'The revision in which the last peer left the map: removed, suspended or expired. Null where none is recorded.',
    }),
    pending: z.array(PendingHost).meta({ description: 'Hosts that have not acknowledged it, or a later revision.' }),
  })
  .meta({ id: 'RemovalStatus' });
export type RemovalStatus = z.infer<typeof RemovalStatus>;
