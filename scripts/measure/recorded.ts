import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';
import { type Figure, nameOf, type RecordedFigure } from './figures.ts';

/** The file whose last section is the history of the figures, within the project. */
export const recordedPath = 'docs/performance.md';

const heading = '## History\n';
const columns = ['subject', 'what', 'against', 'figure', 'measured', 'commit', 'date', 'machine'];

/**
 * Reads the recorded figures of a project, the oldest of a row first; none where it has no file of
 * them.
 */
export function readRecorded(folder: string): RecordedFigure[] {
  const [, section = ''] = readDocument(folder).split(`\n${heading}`);
  const lines = section.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(1).map(parseLine);
}

/** Writes the recorded figures of a project. */
export function writeRecorded(folder: string, rows: readonly RecordedFigure[]): void {
  const [before = '', section = ''] = readDocument(folder).split(`\n${heading}`);
  const text = section.split('\n').filter((line) => !line.startsWith('|'));
  const lines = rows.map(({ subject, what, baseline, figure, measured, commit, date, machine }) =>
    formatLine([subject, what, baseline, `${figure}`, measured, commit, date, machine]),
  );
  const table = `${formatLine(columns)}|${'---|'.repeat(columns.length)}\n${lines.join('')}`;
  writeFileSync(join(folder, recordedPath), `${before}\n${heading}\n${text.join('\n').trim()}\n\n${table}`);
}

/**
 * The history after a measurement of these subjects: a row keeps its former figures, but those of
 * the same commit and of rows that are gone.
 */
export function addToHistory(history: readonly RecordedFigure[], added: readonly RecordedFigure[]): RecordedFigure[] {
  const subjects = new Set(added.map(({ subject }) => subject));
  return [
    ...history.filter(({ subject }) => !subjects.has(subject)),
    ...added.flatMap((row) => [
      ...history.filter((each) => nameOf(each) === nameOf(row) && each.commit !== row.commit),
      row,
    ]),
  ];
}

/** A measured figure with its origin. */
export function toRecorded(row: Figure, commit: string): RecordedFigure {
  return { ...row, commit, date: new Date().toISOString().slice(0, 10), machine: describeMachine() };
}

/** What figures depend on apart from the code. */
export function describeMachine(): string {
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}`;
}

/**
 * The commit that is checked out, and the files that differ from it, one a line; the recorded
 * figures may differ.
 */
export function readCommit(folder: string): { readonly commit: string; readonly changed: string } {
  const git = (...args: string[]) => command(['git', '-C', folder, ...args]).trimEnd();
  const changed = git('status', '--porcelain', '--untracked-files=all', '--', '.', `:(exclude)${recordedPath}`);
  return { commit: git('rev-parse', '--short=10', 'HEAD'), changed };
}

function readDocument(folder: string): string {
  const file = join(folder, recordedPath);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function formatLine(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |\n`;
}

function parseLine(line: string): RecordedFigure {
  const cells = line.split('|').map((cell) => cell.trim());
  const [, subject = '', what = '', baseline = '', figure, measured = '', commit = '', date = '', machine = ''] = cells;
  return { subject, what, baseline, figure: Number(figure), measured, commit, date, machine };
}
