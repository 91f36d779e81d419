import { stripVTControlCharacters } from 'node:util';

/** Null for a pipe or a file, which gets whole rows, as in docker, kubectl and systemctl. */
export function terminalColumns(): number | null {
  return process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : null;
}

/** A serial console and `docker exec -it` may report no columns: then 80. */
export const columnsOf = ({ columns }: { readonly columns: number }): number => (columns > 0 ? columns : 80);

/** Characters of names that are two columns wide on a terminal (UAX #11). */
const wide =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const plainText = /^[\x20-\x7e]*$/;

/** The columns of a text on a terminal. Styles take none. */
export function widthOf(text: string): number {
  // Skips Node's expression for styles in unstyled text, because compiling it takes a millisecond.
  const bare = text.includes('\u001b') ? stripVTControlCharacters(text) : text;
  if (plainText.test(bare)) return bare.length;
  return [...bare].reduce((sum, character) => sum + widthOfCharacter(character), 0);
}

function widthOfCharacter(character: string): number {
  if (/\p{M}/u.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Returns a text that fits, else its beginning and an ellipsis. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let taken = '';
  let width = 0;
  for (const character of text) {
    width += widthOfCharacter(character);
    if (width > columns - 1) break;
    taken += character;
  }
  return `${taken}…`;
}

/** Folds a text between words, and indents further lines. A word beyond a line stays whole. */
export function fold(text: string, columns: number | null, indent = 2): string {
  if (columns === null || widthOf(text) <= columns) return text;
  const lines: string[] = [];
  const [first = '', ...words] = text.trimStart().split(' ');
  let line = `${text.slice(0, text.length - text.trimStart().length)}${first}`;
  for (const word of words) {
    const joined = `${line} ${word}`;
    if (widthOf(joined) <= columns) {
      line = joined;
      continue;
    }
    lines.push(line);
    line = `${' '.repeat(indent)}${word}`;
  }
  return [...lines, line].join('\n');
}

/** The reduction of a table's columns on a narrow terminal. */
export interface Narrowing {
  /** Columns that are truncated, such as names and keys, and their minimum widths. */
  readonly cut?: Readonly<Record<string, number>>;
  /** Columns that are hidden next. */
  readonly hide?: readonly string[];
}

/** The visible columns, and the maximum width of each. */
export interface Fitted {
  readonly shown: readonly number[];
  readonly most: ReadonlyMap<number, number>;
  /** Columns that move to a second line of each row. */
  readonly folded: readonly number[];
}

const gap = 2;

/** First truncates columns, then hides some, and then moves the last ones to a second line. */
export function fitColumns(
  header: readonly string[],
  widths: readonly number[],
  narrowing: Narrowing,
  columns: number,
): Fitted {
  const { cut: cutting = {}, hide = [] } = narrowing;
  const most = new Map<number, number>();
  const widthIn = (column: number) => Math.min(widths[column] ?? 0, most.get(column) ?? Number.POSITIVE_INFINITY);
  const total = (shown: readonly number[]) => shown.reduce((sum, column) => sum + widthIn(column) + gap, -gap);
  const all = header.map((_, column) => column);
  const shrink = (shown: readonly number[]) => {
    // Without the hidden column, others may have more room.
    most.clear();
    for (const column of shown) {
      const least = cutting[header[column] ?? ''];
      const excess = total(shown) - columns;
      if (least !== undefined && excess > 0) most.set(column, Math.max(least, widthIn(column) - excess));
    }
  };
  shrink(all);
  let shown = all;
  for (const name of hide) {
    if (total(shown) <= columns) break;
    shown = shown.filter((column) => header[column] !== name);
    shrink(shown);
  }
  const folded: number[] = [];
  while (shown.length > 1 && total(shown) > columns) {
    folded.unshift(shown.at(-1) as number);
    shown = shown.slice(0, -1);
    shrink(shown);
  }
  return { shown, most, folded };
}
