/** The details as text, such as `network: 1; routes: 10.1.0.0/16, 10.2.0.0/16`. */
export function describeDetails(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .map(([field, value]) => `${field.replaceAll('_', ' ')}: ${describeValue(value)}`)
    .join('; ');
}

function describeValue(value: unknown): string {
  if (value === null || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  // Quotes a text that could be mistaken for another field.
  if (typeof value === 'string') return /[;"]/.test(value) ? JSON.stringify(value) : value;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(describeValue).join(', ');
  return typeof value === 'object' ? describeThing(value) : String(value);
}

/** A peer by its name and id, and any other object by its fields. */
function describeThing({ id, name, ...fields }: { readonly id?: unknown; readonly name?: unknown }): string {
  const others = Object.entries(fields).map(
    ([field, value]) => `${field.replaceAll('_', ' ')} ${describeValue(value)}`,
  );
  return [name, id == null ? null : `(${id})`, ...others].filter((part) => part != null).join(' ');
}
