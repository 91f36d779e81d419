/** The most bytes of one label of a domain name (RFC 1035, 2.3.4). */
export const longestLabel = 63;

interface NameAndLabel {
  readonly id: number | string;
  readonly name: string;
  /** The label that the service gives it; absent where that follows from the name. */
  readonly label?: string;
}

/** A name, with the label by which hosts resolve it where that is another one: `北京-web (beijing-web)`. */
export function nameWithLabel(named: NameAndLabel): string {
  const label = findOtherLabel(named);
  return label === null ? named.name : `${named.name} (${label})`;
}

/** The label by which hosts resolve a name; null where it is the name itself. */
export function findOtherLabel({ id, name, label }: NameAndLabel): string | null {
  const resolved = label ?? (toLabel(name) || `peer-${id}`);
  return resolved === name.toLowerCase() ? null : resolved;
}

/** True for a label as {@link toLabel} makes them. */
export function isLabel(text: string): boolean {
  return text !== '' && toLabel(text) === text;
}

/** A name as a label: lower case, a hyphen for all else, none at either end. Empty where nothing of it is left. */
export function toLabel(name: string): string {
  return cutLabel(name.toLowerCase().replace(/[^a-z0-9]+/g, '-'), longestLabel);
}

/** Cuts a label to a length, and takes the hyphens at its ends away. */
export function cutLabel(label: string, length: number): string {
  return label.replace(/^-/, '').slice(0, length).replace(/-$/, '');
}
