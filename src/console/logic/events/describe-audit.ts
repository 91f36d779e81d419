import type { AuditEntry } from '../../../contract/audit.ts';
import { formatExact } from '../text/format.ts';

const wordOf = (kind: string) => (kind === 'enrollment_key' ? 'enrolment key' : kind.replaceAll('_', ' '));

/** The actor, such as `user me@example.net`. */
export function describeActor({ actor: { kind, name } }: Pick<AuditEntry, 'actor'>): string {
  if (kind === 'nobody') return 'no user';
  return [wordOf(kind), name].filter(Boolean).join(' ');
}

/** The target, such as `network office (1)`. */
export function describeTarget({ target: { kind, id, name } }: Pick<AuditEntry, 'target'>): string {
  return [wordOf(kind), name, id === null ? null : `(${id})`].filter(Boolean).join(' ');
}

export type NetworkNames = ReadonlyMap<number, string>;

/** The names of networks, including deleted ones. */
export function findNames(
  networks: readonly { readonly id: number; readonly name: string }[],
  entries: readonly AuditEntry[],
): NetworkNames {
  const targets = entries.flatMap(({ target: { kind, id, name } }) =>
    kind === 'network' && id !== null && name !== null ? [[id, name] as const] : [],
  );
  // Entries are newest first. The last name of a deleted network wins.
  return new Map([...targets.toReversed(), ...networks.map(({ id, name }) => [id, name] as const)]);
}

/** The details in one line, like `cpn audit`. */
export function describeDetails({ details }: Pick<AuditEntry, 'details'>, names: NetworkNames = new Map()): string {
  return Object.entries(details)
    .map(([field, value]) => {
      const name = field === 'network' && typeof value === 'number' ? names.get(value) : undefined;
      const text = name === undefined ? describeValue(value) : `${describeText(name)} (${value})`;
      return `${field.replaceAll('_', ' ')}: ${text}`;
    })
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

/** Quotes a text that could be read as another field. */
function describeText(text: string): string {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return formatExact(text);
  return /[;"]/.test(text) ? JSON.stringify(text) : text;
}
