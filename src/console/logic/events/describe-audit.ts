import type { AuditEntry } from '../../../contract/audit.ts';
import { formatTime } from '../text/time.ts';

/** Who did something, such as `user me@example.net`. */
export function describeActor({ actor: { kind, name } }: Pick<AuditEntry, 'actor'>): string {
  if (kind === 'nobody') return 'no user';
  return [kind.replaceAll('_', ' '), name].filter(Boolean).join(' ');
}

/** What something was done to, such as `network office (1)`. */
export function describeTarget({ target: { kind, id, name } }: Pick<AuditEntry, 'target'>): string {
  return [kind.replaceAll('_', ' '), name, id === null ? null : `(${id})`].filter(Boolean).join(' ');
}

/** The fields that were set, in one line, as `cpn audit` has them. */
export function describeDetails({ details }: Pick<AuditEntry, 'details'>): string {
  return Object.entries(details)
    .map(([field, value]) => `${field.replaceAll('_', ' ')}: ${describeValue(value)}`)
    .join('; ');
}

function describeValue(value: unknown): string {
  if (value === null || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return describeText(value);
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(describeValue).join(', ');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value as object)
    .map(([field, each]) => `${field.replaceAll('_', ' ')} ${describeValue(each)}`)
    .join(' ');
}

/** A text is not to look like another field. */
function describeText(text: string): string {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return formatTime(text);
  return /[;"]/.test(text) ? JSON.stringify(text) : text;
}
