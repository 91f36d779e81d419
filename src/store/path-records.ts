import * as v from 'valibot';
import { pathEnds } from '../core/paths/direct-paths.ts';
import { natLooks } from '../core/paths/nat-look.ts';
import { attemptOutcomes, type PathRecords } from '../core/paths/path-record.ts';
import { instant } from './files/file-schema.ts';

const look = v.picklist(natLooks);

const attempt = v.object({
  at: instant,
  outcome: v.picklist(attemptOutcomes),
  tried: v.array(
    v.object({
      endpoint: v.string(),
      outcome: v.picklist(['no-answer', 'handshake', 'refused', 'reached']),
    }),
  ),
  nats: v.object({ own: look, peer: look }),
  observed: v.array(v.string()),
});

const switched = v.object({
  to: v.picklist(['direct', 'relayed']),
  at: instant,
  why: v.nullable(v.picklist(pathEnds)),
});

const records = v.record(v.string(), v.object({ switched: v.nullable(switched), attempt: v.nullable(attempt) }));

/**
 * The records of direct paths in the notes, by peer. Empty if another version wrote other words.
 */
export const pathRecords = v.optional(v.fallback(records, {}), (): PathRecords => ({}));
