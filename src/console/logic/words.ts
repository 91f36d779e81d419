/** The words of a field for several values, such as routes: separated by spaces, commas or lines. */
export function splitWords(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}
