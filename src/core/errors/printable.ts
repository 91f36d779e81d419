/** Control, separating, reordering and invisible characters. U+2800 is Braille without dots. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/u;

/** Makes `text` one line that is safe for a terminal. Keeps emoji. */
export function printable(text: string): string {
  return unprintable.test(text) ? replaceUnprintable(text) : text;
}

/** As {@link printable}, but keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return text.replace(/[^\n\t]+/g, printable);
}

/** An emoji may contain U+200D, U+FE0F and tags, in the recommended sequences (UTS #51, ED-27). */
function replaceUnprintable(text: string): string {
  // Local, because it takes milliseconds to compile, and browsers before 2023 lack the flag.
  const emojiOr = /(\p{RGI_Emoji})|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/gv;
  return text.replace(emojiOr, (_, emoji: string | undefined) => emoji ?? '\u{fffd}');
}
