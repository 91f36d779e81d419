/** Controls, separators of lines, and characters that draw nothing or reorder others. U+2800 is a Braille pattern without dots. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/u;

/** `text` without control, bidirectional and invisible characters: safe for a terminal, and one line. Emoji stay whole. */
export function printable(text: string): string {
  return unprintable.test(text) ? replaceUnprintable(text) : text;
}

/** As {@link printable}, of a text that may have lines and tabs. */
export function printableLines(text: string): string {
  return text.replace(/[^\n\t]+/g, printable);
}

/** An emoji may hold U+200D, U+FE0F and tags, in the sequences that Unicode recommends (UTS #51, ED-27). */
function replaceUnprintable(text: string): string {
  // In this function, because it takes milliseconds to compile, and browsers before 2023 do not have the flag.
  const emojiOr = /(\p{RGI_Emoji})|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/gv;
  return text.replace(emojiOr, (_, emoji: string | undefined) => emoji ?? '\u{fffd}');
}
