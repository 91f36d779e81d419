/** A page of the manual in the macros of man(7), a line an element. */
export type Roff = readonly string[];

/** Plain text as roff prints it, dashes as they are typed. */
export function plain(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/\s+/g, ' ').trim();
  // A line that begins with one of these would be a request.
  return /^[.']/.test(safe) ? `\\&${safe}` : safe;
}

export const bold = (text: string): string => `\\fB${plain(text)}\\fR`;
export const italic = (text: string): string => `\\fI${plain(text)}\\fR`;

/** A reference to another page of the manual. */
export const reference = (page: string, section = 1): string => `${bold(page)}(${section})`;

export const section = (title: string, ...lines: readonly string[]): string[] => [
  `.SH ${title.toUpperCase()}`,
  ...lines,
];

/** A term with its description, indented. */
export const entry = (term: string, ...lines: readonly string[]): string[] => ['.TP', term, ...lines];

/** Lines as they are typed: not filled, not wrapped. */
export function typed(lines: readonly string[]): string[] {
  return lines.flatMap((line, index) => [...(index > 0 ? ['.PP'] : []), '.nf', bold(line), '.fi']);
}
