import { describe, expect, it } from 'vitest';
import { frame } from '../../../../src/cli/output/terminal/redraw.ts';

const tokens = /\p{Cc}\[[?0-9;]*[A-Za-z]|./gsu;

/** What a terminal of so many rows and columns shows after these writes, and the mode they leave behind. */
function show(writes: readonly string[], rows: number, columns: number) {
  const screen = Array.from({ length: rows }, () => 'x'.repeat(columns));
  const cursor = { row: 0, column: 0 };
  let wraps = true;
  let scrolled = 0;
  for (const [token] of writes.join('').matchAll(tokens)) {
    const line = screen[cursor.row] ?? '';
    if (token === '\x1b[H') Object.assign(cursor, { row: 0, column: 0 });
    else if (token === '\x1b[K') screen[cursor.row] = line.slice(0, cursor.column);
    else if (token === '\x1b[J') screen.fill('', cursor.row);
    else if (token === '\x1b[?7l' || token === '\x1b[?7h') wraps = token.endsWith('h');
    else if (token === '\n') {
      if (cursor.row + 1 === rows) scrolled += 1;
      else cursor.row += 1;
      cursor.column = 0;
    } else if (!/\p{Cc}/u.test(token)) {
      if (cursor.column === columns && wraps) throw new Error('a line was wrapped');
      const at = Math.min(cursor.column, columns - 1);
      screen[cursor.row] = line.slice(0, at) + token + line.slice(at + 1);
      cursor.column = wraps ? at + 1 : Math.min(at + 1, columns - 1);
    } else throw new Error(`a terminal may not know ${JSON.stringify(token)}`);
  }
  return { screen, wraps, scrolled, row: cursor.row };
}

describe('a frame on a terminal', () => {
  it('replaces what was there, be it longer or wider, and leaves the cursor below', () => {
    const { screen, row } = show([frame('one\ntwo two\nthree', 6), frame('1\n2', 6)], 6, 20);
    expect([screen, row]).toEqual([['1', '2', '', '', '', ''], 2]);
  });

  it('cuts lines that are too long, and leaves the terminal as it found it', () => {
    const shown = show([frame('0123456789', 4)], 4, 5);
    expect(shown.screen[0]).toBe('01239');
    expect(shown.screen.slice(1)).toEqual(['', '', '']);
    expect(shown.wraps).toBe(true);
  });

  it.each([3, 4, 5, 6])('of 5 lines never scrolls a terminal of %i rows, and says what is left out', (rows) => {
    const text = ['a', 'b', 'c', 'd', 'e'].join('\n');
    const { screen, scrolled } = show([frame(text, rows)], rows, 30);
    expect(scrolled).toBe(0);
    const lines = screen.filter((line) => line !== '');
    expect(lines.at(-1)).toBe(rows > 5 ? 'e' : `… ${5 - (rows - 2)} more lines`);
  });
});
