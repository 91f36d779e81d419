import { stripVTControlCharacters, styleText } from 'node:util';
import { CpnError, printable } from '../core/errors.ts';
import { escapeUnshapely } from './json-text.ts';

/** One JSON document on stdout: what scripts read, and what does no harm to the terminal of a person who does. */
export function printJson(document: unknown): void {
  process.stdout.write(`${escapeUnshapely(JSON.stringify(document, null, 2))}\n`);
}

/** Text on stdout: what a person, or a pipe, asked for. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Text on stderr: how it goes. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function progress(step: string): void {
  note(dim(`· ${printable(step)}`));
}

export function warn(text: string): void {
  note(`${yellow('warning:')} ${printable(text)}`);
}

/** One line for a failure that was foreseen; the stack too for one that was not. */
export function printError(error: unknown): void {
  note(`${red('cpn:')} ${error instanceof CpnError ? printable(error.message) : describeUnforeseen(error)}`);
}

/** Rows in columns, two spaces apart, the first row as the header; what came over the wire is made printable. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header.map((name) => dim(name)), ...rows.map((row) => row.map(printableCell))];
  const widths = header.map((_, column) => Math.max(...cells.map((row) => width(row[column] ?? ''))));
  const pad = (cell: string, column: number) => cell + ' '.repeat((widths[column] ?? 0) - width(cell));
  return cells.map((row) => row.map(pad).join('  ').trimEnd()).join('\n');
}

export const dim = (text: string) => style('dim', text);
export const bold = (text: string) => style('bold', text);
export const red = (text: string) => style('red', text);
export const green = (text: string) => style('green', text);
export const yellow = (text: string) => style('yellow', text);

/** Styles only what goes to a terminal; `styleText` honours NO_COLOR. */
function style(format: Parameters<typeof styleText>[0], text: string): string {
  return process.stdout.isTTY && process.stderr.isTTY ? styleText(format, text) : text;
}

/** Our own styling is let through, everything else that a terminal obeys is not. */
function printableCell(cell: string): string {
  const plain = cell.replace(styling, '');
  const clean = printable(plain);
  return clean === plain ? cell : clean;
}

/** What `styleText` writes: a colour or a weight, by its number. */
const styling = new RegExp(`${String.fromCharCode(27)}\\[\\d{1,2}m`, 'g');

function width(text: string): number {
  return stripVTControlCharacters(text).length;
}

function describeUnforeseen(error: unknown): string {
  return `this should not happen, please report it\n${error instanceof Error ? error.stack : String(error)}`;
}
