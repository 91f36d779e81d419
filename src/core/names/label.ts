/** The maximum bytes of one DNS label (RFC 1035, 2.3.4). */
export const longestLabel = 63;

interface NameAndLabel {
  readonly id: number | string;
  readonly name: string;
  /** The label from the service. Absent if it derives from the name. */
  readonly label?: string;
}

/** A name with its DNS label, if that differs: `北京-web (beijing-web)`. */
export function nameWithLabel(named: NameAndLabel): string {
  const label = findOtherLabel(named);
  return label === null ? named.name : `${named.name} (${label})`;
}

/** The DNS label of a name. Null if it equals the name. */
export function findOtherLabel({ id, name, label }: NameAndLabel): string | null {
  const resolved = label ?? (toLabel(name) || `peer-${id}`);
  return resolved === name.toLowerCase() ? null : resolved;
}

/**
 * Converts to lower case, and replaces each run of characters other than letters and digits by a
 * hyphen, without hyphens at the ends. The result may be empty.
 */
export function toLabel(name: string): string {
  return cutLabel(name.toLowerCase().replace(/[^a-z0-9]+/g, '-'), longestLabel);
}

/** Cuts a label to a length, without hyphens at its ends. */
export function cutLabel(label: string, length: number): string {
  return label.replace(/^-/, '').slice(0, length).replace(/-$/, '');
}
