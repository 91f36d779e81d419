import { fstatSync } from 'node:fs';
import { styleText } from 'node:util';
import { CpnError, printable } from '../../core/errors/index.ts';
import { cut, fitColumns, fold, type Narrowing, terminalColumns, widthOf } from './terminal/fit.ts';
import { deliver } from './terminal/stdout.ts';
import { type StepEnding, StepLine } from './terminal/step-line.ts';

/** Printed by a command for all networks where there is none. */
export const noNetwork = 'no network is joined; join one with "cpn join"';

/** One JSON document on stdout: what scripts read, and what does no harm to the terminal of a person who does. */
export function printJson(document: unknown): void {
  print(toJson(document));
}

/** The text of a JSON document. */
export function toJson(document: unknown): string {
  return escapeUnshapely(JSON.stringify(document, null, 2));
}

/** One JSON document in one line, for a command that prints more of them. */
export function toJsonLine(document: unknown): string {
  return escapeUnshapely(JSON.stringify(document));
}

/** Text on stdout: what a person, or a pipe, asked for. */
export function print(text: string): void {
  endStep();
  process.stdout.write(`${text}\n`);
}

/** As {@link print}, and waits for stdout to take it. @throws DiskFailed where it does not, also where its reader went away */
export async function printAll(text: string): Promise<void> {
  endStep();
  await deliver(`${text}\n`);
}

/** A secret that is shown this once. */
interface OnlyCopy {
  /** As part of a sentence. */
  readonly what: string;
  readonly text: string;
  /** Makes it useless. */
  revoke(): Promise<void>;
  /** The command that does the same. */
  readonly remedy: string;
}

/** Prints a secret that is shown this once. Where stdout does not take it, it is revoked. @throws DiskFailed then */
export async function printOnlyCopy({ what, text, revoke, remedy }: OnlyCopy): Promise<void> {
  warnReadable(what);
  try {
    await printAll(text);
  } catch (error) {
    try {
      await revoke();
      warn(`${what} was revoked because its value was lost; create another`);
    } catch (failure) {
      if (!(failure instanceof CpnError)) throw failure;
      warn(`the value of ${what} was lost, and it was not revoked: ${failure.message}; run: ${remedy}`);
    }
    throw error;
  }
}

/** Warns where a secret goes to a file that other users can read, as a shell makes it with the usual umask. */
export function warnReadable(what: string): void {
  const { mode, isPlain } = describeStdout();
  if (isPlain && (mode & 0o004) !== 0)
    warn(`other users can read the file to which ${what} is written (mode ${formatMode(mode)}); run: chmod 600 FILE`);
}

/** Whether stdout is a file, and its mode. */
function describeStdout(): { readonly mode: number; readonly isPlain: boolean } {
  try {
    const stats = fstatSync(process.stdout.fd);
    return { mode: stats.mode, isPlain: stats.isFile() };
  } catch {
    // A closed stdout fails when it is written to.
    return { mode: 0, isPlain: false };
  }
}

const formatMode = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0');

/** Text on stderr: how it went. */
export function note(text: string): void {
  endStep();
  process.stderr.write(`${text}\n`);
}

/** The step that is under way from now on, and how the one before ended. */
export function progress(step: string, before: StepEnding = 'done'): void {
  stepLine.begin(step, before);
}

/** Ends the step under way; whatever is printed as a result ends it as done. */
export function endStep(ending: StepEnding = 'done'): void {
  stepLine.end(ending);
}

/** What happens within the step under way. */
export function printRemark(text: string): void {
  stepLine.interrupt(`${dim(`· ${printable(text)}`)}\n`);
}

export function warn(text: string): void {
  stepLine.interrupt(`${yellow('warning:')} ${printable(text)}\n`);
}

/** One line for a failure that was foreseen; the stack too for one that was not. */
export function printError(error: unknown): void {
  endStep('failed');
  note(`${red('cpn:')} ${error instanceof CpnError ? printable(error.message) : describeUnforeseen(error)}`);
}

/** A cell of a table: a text, or one with our own styling, which is put on after the text was made printable. */
export type Cell = string | readonly [text: string, paint: (text: string) => string];

/**
 * Rows in columns, two spaces apart, the first row as the header; what came over the wire is made printable. With `narrowing` the rows
 * fit the terminal: what has no room goes to a second line, as `endpoint 203.0.113.1:51820`.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  narrowing: Narrowing | null = null,
  columns: number | null = terminalColumns(),
): string {
  const widths = header.map((name, column) =>
    Math.max(widthOf(name), ...rows.map((row) => widthOf(printableCell(textOf(row[column] ?? ''))))),
  );
  const all = { shown: header.map((_, column) => column), most: new Map<number, number>(), folded: [] };
  const fitted = narrowing === null || columns === null ? all : fitColumns(header, widths, narrowing, columns);
  const { shown, most, folded } = fitted;
  const head = shown.map((column) => header[column] && dim(header[column] ?? ''));
  const cells = [head, ...rows.map((row) => shown.map((column) => showCell(row[column] ?? '', most.get(column))))];
  const fit = shown.map((_, at) => Math.max(...cells.map((row) => widthOf(row[at] ?? ''))));
  const pad = (cell = '', at: number) => cell + ' '.repeat((fit[at] ?? 0) - widthOf(cell));
  const lines = cells.map((row) => row.map(pad).join('  ').trimEnd());
  const [top = '', ...others] = lines;
  return [
    top,
    ...others.flatMap((line, at) => [line, ...foldCells(rows[at] ?? [], folded, { header, columns, narrowing })]),
  ].join('\n');
}

/** The cells that do not fit in the row, each after its column name. Leaves out empty cells. */
function foldCells(
  row: readonly Cell[],
  folded: readonly number[],
  {
    header,
    columns,
    narrowing,
  }: {
    readonly header: readonly string[];
    readonly columns: number | null;
    readonly narrowing: Narrowing | null;
  },
): string[] {
  const parts = folded.flatMap((column) => {
    const title = header[column] ?? '';
    const text = cut(printableCell(textOf(row[column] ?? '')), narrowing?.cut?.[title] ?? Number.POSITIVE_INFINITY);
    return text === '' || text === '-' ? [] : [`${title} ${text}`.trim()];
  });
  return parts.length === 0 ? [] : [fold(`    ${parts.join(' · ')}`, columns, 4)];
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell[0];
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

const stepLine = new StepLine(
  {
    // A dumb terminal has no cursor to move (terminfo's `dumb`).
    isLive: () => process.stderr.isTTY === true && process.env.TERM !== 'dumb',
    write: (text) => void process.stderr.write(text),
  },
  () => performance.now(),
  { marks: { done: green, failed: red, open: yellow }, dim },
);

function showCell(cell: Cell, most = Number.POSITIVE_INFINITY): string {
  const text = cut(printableCell(textOf(cell)), most);
  return typeof cell === 'string' ? text : cell[1](text);
}

/**
 * Nothing that a terminal obeys is let through. Spaces are one: with many, the name that others gave a thing would look like a row of
 * its own.
 */
export function printableCell(text: string): string {
  return printable(text).replace(/ {2,}/g, ' ');
}

function describeUnforeseen(error: unknown): string {
  return `internal error, please report it\n${error instanceof Error ? error.stack : String(error)}`;
}

/**
 * What a terminal would obey or show in another order, in JSON: DEL and the C1 controls, bidirectional and invisible characters,
 * and line separators. JSON.stringify escapes only the C0 controls.
 */
const unshapely = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/gu;

/** JSON that means the same, with such characters as escapes. */
export function escapeUnshapely(json: string): string {
  return json.replace(unshapely, (character) =>
    [...Array(character.length).keys()].map((unit) => escapeUnit(character.charCodeAt(unit))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** An amount of bytes as people read it: `512 B`, `1.4 MiB`. */
export function describeBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** power;
  return `${power === 0 ? amount : amount.toFixed(1)} ${units[power]}`;
}
