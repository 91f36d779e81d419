const mostNamed = 5;

/** The first five names and the number of others, or six. Quotes blanks and separators. */
export function listNames(names: readonly string[]): string {
  const shown = names.length === mostNamed + 1 ? names : names.slice(0, mostNamed);
  const more = names.length - shown.length;
  return `${shown.map(quote).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function quote(name: string): string {
  return name === '' || /[\s,;()"]/u.test(name) ? `"${name.replaceAll('"', "'")}"` : name;
}
