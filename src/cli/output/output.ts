import { fstatSync } from 'node:fs';
import { styleText } from 'node:util';
import { CpnError, printable } from '../../core/errors/index.ts';
import { cut, fitColumns, fold, type Narrowing, terminalColumns, widthOf } from './terminal/fit.ts';
import { deliver } from './terminal/stdout.ts';
import { type StepEnding, StepLine } from './terminal/step-line.ts';

export const noNetwork = 'no network is joined; join one with "cpn join"';

/** Prints one JSON document to stdout for scripts. It is also safe for a terminal. */
export function printJson(document: unknown): void {
  print(toJson(document));
}

export function toJson(document: unknown): string {
  return escapeUnshapely(JSON.stringify(document, null, 2));
}

export function toJsonLine(document: unknown): string {
  return escapeUnshapely(JSON.stringify(document));
}

/** Prints results to stdout. */
export function print(text: string): void {
  endStep();
  process.stdout.write(`${text}\n`);
}

/** As {@link print}, but waits until it is written. @throws DiskFailed, even for a closed pipe */
export async function printAll(text: string): Promise<void> {
  endStep();
  await deliver(`${text}\n`);
}

/** A secret that is shown only once. */
interface OnlyCopy {
  /** For use within a sentence. */
  readonly what: string;
  readonly text: string;
  revoke(): Promise<void>;
  /** The command that revokes it. */
  readonly remedy: string;
}

/** Prints a secret that is shown only once. If stdout fails, revokes it. @throws DiskFailed */
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

/** Warns if a secret goes to a world-readable file, as a shell creates it by default. */
export function warnReadable(what: string): void {
  const { mode, isPlain } = describeStdout();
  if (isPlain && (mode & 0o004) !== 0)
    warn(`other users can read the file to which ${what} is written (mode ${formatMode(mode)}); run: chmod 600 FILE`);
}

/** True for a file, with its mode. */
function describeStdout(): { readonly mode: number; readonly isPlain: boolean } {
  try {
    const stats = fstatSync(process.stdout.fd);
    return { mode: stats.mode, isPlain: stats.isFile() };
  } catch {
    // A closed stdout fails at the write.
    return { mode: 0, isPlain: false };
  }
}

const formatMode = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0');

/** Prints a message to stderr. */
export function note(text: string): void {
  endStep();
  process.stderr.write(`${text}\n`);
}

/** Starts a step, and ends the previous one. */
export function progress(step: string, before: StepEnding = 'done'): void {
  stepLine.begin(step, before);
}

/** Ends the current step. Printing a result ends it as done. */
export function endStep(ending: StepEnding = 'done'): void {
  stepLine.end(ending);
}

/** Prints an event within the current step. */
export function printRemark(text: string): void {
  stepLine.interrupt(`${dim(`· ${printable(text)}`)}\n`);
}

export function warn(text: string): void {
  stepLine.interrupt(`${yellow('warning:')} ${printable(text)}\n`);
}

/** Prints one line for an expected failure, and the stack for an unexpected one. */
export function printError(error: unknown): void {
  endStep('failed');
  note(`${red('cpn:')} ${error instanceof CpnError ? printable(error.message) : describeUnforeseen(error)}`);
}

/** A cell of a table: a text, optionally with a style that is applied after sanitizing. */
export type Cell = string | readonly [text: string, paint: (text: string) => string];

/**
 * Sanitizes all cells. With `narrowing`, fits the terminal: cells without room move to a second
 * line, as `endpoint 203.0.113.1:51820`.
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

/** Styles only text for a terminal. `styleText` respects NO_COLOR. */
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

/** Also removes repeated spaces, with which a foreign name could imitate a separate row. */
export function printableCell(text: string): string {
  return printable(text).replace(/ {2,}/g, ' ');
}

function describeUnforeseen(error: unknown): string {
  return `internal error, please report it\n${error instanceof Error ? error.stack : String(error)}`;
}

/**
 * Characters in JSON that control or reorder a terminal's text: DEL, the C1 controls, bidirectional
 * and invisible characters, and line separators. JSON.stringify escapes only the C0 controls.
 */
const unshapely = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/gu;

/** Escapes these characters, without a change of the meaning. */
export function escapeUnshapely(json: string): string {
  return json.replace(unshapely, (character) =>
    [...Array(character.length).keys()].map((unit) => escapeUnit(character.charCodeAt(unit))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** Formats bytes, such as `512 B` or `1.4 MiB`. */
export function describeBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** power;
  return `${power === 0 ? amount : amount.toFixed(1)} ${units[power]}`;
}
