import type { AuditEntry } from '../../contract/audit.ts';

/** Who did something, such as `user me@example.net`. */
export function describeActor({ actor: { kind, name } }: Pick<AuditEntry, 'actor'>): string {
  if (kind === 'nobody') return 'no user';
  return [kind.replaceAll('_', ' '), name].filter(Boolean).join(' ');
}

/** What something was done to, such as `network office (1)`. */
export function describeTarget({ target: { kind, id, name } }: Pick<AuditEntry, 'target'>): string {
  return [kind.replaceAll('_', ' '), name, id === null ? null : `(${id})`].filter(Boolean).join(' ');
}

/** The fields that were set, in one line. */
export function describeDetails({ details }: Pick<AuditEntry, 'details'>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}
