import * as z from 'zod';
import { identifier, instant, nameShown } from './text.ts';

/**
 * A host's state at its last request to a deleted network. `stated`: the reply stated the deletion,
 * and the host has not confirmed it. `unsupported`: its version does not take the tunnel down.
 */
export const DeletionOutcome = z.enum(['stated', 'unsupported', 'applied']);
export type DeletionOutcome = z.infer<typeof DeletionOutcome>;

/** A host that may still reach a peer that is no longer in the map. */
export const PendingHost = z
  .object({
    id: identifier,
    name: nameShown,
    acknowledged_revision: z.int().min(0).nullable().meta({
      description: 'A revision that the host has applied; it may have applied later ones. Null where none is known.',
    }),
    last_seen: instant.nullable().meta({ description: 'The last request of the host, to a minute.' }),
    version: z.string().nullable().optional().meta({
      maxLength: 120,
      description: 'Of a deleted network: the last version of cpn on the host. Null where none is known.',
    }),
    deletion: DeletionOutcome.exclude(['applied']).nullable().optional().meta({
      description:
        'Of a deleted network: stated where the host received the statement and does not confirm yet that its tunnel is down; unsupported where its version of cpn does not take it down; null where it made no request since.',
    }),
  })
  .meta({ id: 'PendingHost' });
export type PendingHost = z.infer<typeof PendingHost>;

/** How far the last removal of a peer from a network has been applied. */
export const RemovalStatus = z
  .object({
    revision: z.int().min(0).nullable().meta({
      description:
        'The revision in which the last peer left the map: removed, suspended or expired. Null where none is recorded.',
    }),
    pending: z.array(PendingHost).meta({ description: 'Hosts that have not acknowledged it, or a later revision.' }),
    deleted_at: instant.optional().meta({
      description:
        'When the network was deleted; absent of one that exists. Then revision is null, and pending lists the hosts whose tunnels may still be up.',
    }),
  })
  .meta({ id: 'RemovalStatus' });
export type RemovalStatus = z.infer<typeof RemovalStatus>;
