import * as z from 'zod';
import { identifier, instant } from './text.ts';

/** What an entry may be about. */
export const auditActions = [
  ...(['network.create', 'network.update', 'network.delete'] as const),
  ...(['rules.update', 'rules.confirm', 'rules.restore', 'key.create', 'key.revoke'] as const),
  ...(['peer.enroll', 'peer.replace', 'peer.update', 'peer.suspend', 'peer.resume', 'peer.expire'] as const),
  ...(['peer.self_enroll', 'peer.approve'] as const),
  ...(['peer.delete', 'user.create', 'user.update', 'user.delete', 'user.link', 'user.unlink'] as const),
  ...(['password.change', 'password.refused', 'password.reset', 'session.revoke'] as const),
  ...(['factor.add', 'factor.remove', 'factor.recovery_used', 'recovery_codes.create'] as const),
  ...([
    'token.create',
    'token.revoke',
    'login',
    'login.refused',
    'login.approve',
    'login.deny',
    'login.new_address',
    'login.end',
    'logout',
    'audit.prune',
  ] as const),
] as const;
export type AuditAction = (typeof auditActions)[number];

/** True for a pattern that is the action, or begins it and ends in `*`. */
export function matchesAction(action: string, pattern: string): boolean {
  return pattern.endsWith('*') ? action.startsWith(pattern.slice(0, -1)) : action === pattern;
}

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
    kind: z.enum(['network', 'enrollment_key', 'peer', 'user', 'personal_token', 'session', 'second_factor', 'audit']),
    id: identifier.nullable(),
    name: z.string().meta({ maxLength: 1000 }).nullable(),
  })
  .meta({ id: 'AuditTarget' });

const seq = z.int().min(1).meta({ description: 'The number of the entry in the chain of its organization.' });
const hash = z.string().meta({ maxLength: 43, description: 'SHA-256 in base64url.' });

/** Where an entry is in the chain: its hash covers the entry and all before it. */
const AuditPlace = z.object({ seq, hash });

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
    chain: AuditPlace.nullable().optional().meta({ description: 'Null until the entry is chained, about a second.' }),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;

/** A link of the chain. Its hash covers the hash before it, its number and its digest. */
export const AuditLink = z
  .object({
    ...{ seq, hash },
    digest: hash.meta({ description: 'SHA-256 in base64url of the entry without its place in the chain.' }),
    entry: AuditEntry.nullable().meta({ description: 'Null if retention removed it.' }),
  })
  .meta({ id: 'AuditLink' });
export type AuditLink = z.infer<typeof AuditLink>;

/** A limit, because a search compares each entry with each word. */
export const mostSearchWords = 5;

/** The distinct words of a search in lower case. */
export const searchWords = (search: string): string[] => [
  ...new Set(search.toLowerCase().split(/\s+/).filter(Boolean)),
];
