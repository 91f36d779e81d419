import * as z from 'zod';
import { identifier, instant } from './text.ts';

/** The actor of an entry. `name` is an e-mail address, or the peer's or key's name at that time. */
const AuditActor = z
  .object({
    kind: z.enum(['user', 'peer', 'enrollment_key', 'system', 'nobody']),
    id: identifier.nullable(),
    name: z.string().meta({ maxLength: 1000 }).nullable(),
  })
  .meta({ id: 'AuditActor' });

/** The target of an entry. `name` is its name at that time. */
const AuditTarget = z
  .object({
    kind: z.enum(['network', 'enrollment_key', 'peer', 'user', 'personal_token', 'session']),
    id: identifier.nullable(),
    name: z.string().meta({ maxLength: 1000 }).nullable(),
  })
  .meta({ id: 'AuditTarget' });

/** A recorded action, in the same transaction as the action. */
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

/** A limit, because a search compares each entry with each word. */
export const mostSearchWords = 5;

/** The distinct words of a search in lower case. */
export const searchWords = (search: string): string[] => [
  ...new Set(search.toLowerCase().split(/\s+/).filter(Boolean)),
];
