import { stripVTControlCharacters } from 'node:util';

/**
 * The columns of the terminal on stdout. Null for a pipe or a file, which get whole rows,
 * as in docker, kubectl and systemctl.
 */
export function terminalColumns(): number | null {
  return process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : null;
}

/** The columns that a stream to a terminal has. A serial console and `docker exec -it` may report none, for which 80 are the usual number. */
export const columnsOf = ({ columns }: { readonly columns: number }): number => (columns > 0 ? columns : 80);

/** Characters that a terminal shows two columns wide, as far as names have them (UAX #11). */
const wide =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const plainText = /^[\x20-\x7e]*$/;

/** The number of columns that a text takes on a terminal; styles take none. */
export function widthOf(text: string): number {
  // For a text without styles, Node's expression for them is not compiled: that takes a millisecond.
  const bare = text.includes('\u001b') ? stripVTControlCharacters(text) : text;
  if (plainText.test(bare)) return bare.length;
  return [...bare].reduce((sum, character) => sum + widthOfCharacter(character), 0);
}

function widthOfCharacter(character: string): number {
  if (/\p{M}/u.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** The text itself where it fits, else its beginning and an ellipsis. */
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

/** Folds a text between words; a word that is longer than a line stays whole. The lines after the first are indented. */
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

/** How columns of a table give way on a narrow terminal. */
export interface Narrowing {
  /** Columns that lose their ends, such as names and keys, down to so many columns of the terminal. */
  readonly cut?: Readonly<Record<string, number>>;
  /** Columns that are left out first. */
  readonly hide?: readonly string[];
}

/** The columns that are shown, and the most that each of them may take. */
export interface Fitted {
  readonly shown: readonly number[];
  readonly most: ReadonlyMap<number, number>;
  /** Columns that go to a second line of each row. */
  readonly folded: readonly number[];
}

const gap = 2;

/**
 * Fits columns of these widths to a terminal: first some lose their ends, then some are left out, and the last ones go to a second line.
 */
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
    // With one column less, others may be longer again.
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
