const mostNamed = 5;

/** The first five names of a list, and how many more there are. */
export function listNames(names: readonly string[]): string {
  const more = names.length - mostNamed;
  return `${names.slice(0, mostNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
