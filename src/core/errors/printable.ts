/** `text` without control, C1, bidirectional and zero-width characters: safe for a terminal, and one line. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}

/** As {@link printable}, of a text that may have lines and tabs. */
export function printableLines(text: string): string {
  return text.replace(/[^\n\t]+/g, printable);
}
