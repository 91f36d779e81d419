import * as z from 'zod';
import { identifier, instant } from './text.ts';

/** Who did something: `name` is an e-mail address, or what the peer or key is called, as it was at the time. */
const AuditActor = z
  .object({
    kind: z.enum(['user', 'peer', 'enrollment_key', 'system', 'nobody']),
    id: identifier.nullable(),
    name: z.string().meta({ maxLength: 1000 }).nullable(),
  })
  .meta({ id: 'AuditActor' });

/** What something was done to. `name` is what it was called at the time. */
const AuditTarget = z
  .object({
    kind: z.enum(['network', 'enrollment_key', 'peer', 'user', 'personal_token', 'session']),
    id: identifier.nullable(),
    name: z.string().meta({ maxLength: 1000 }).nullable(),
  })
  .meta({ id: 'AuditTarget' });

/** One thing that was done, written together with it. */
export const AuditEntry = z
  .object({
    id: identifier,
    at: instant,
    actor: AuditActor,
    action: z
      .string()
      .meta({ maxLength: 64, description: 'What was done, like network.create.', example: 'network.create' }),
    target: AuditTarget,
    address: z
      .string()
      .meta({ maxLength: 64 })
      .nullable()
      .meta({ description: 'Where the request came from; null without a request.' }),
    details: z.record(z.string(), z.unknown()).meta({ description: 'The fields set, never a secret.' }),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;
