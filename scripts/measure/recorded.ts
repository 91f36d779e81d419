import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';
import type { Ratio, RecordedRatio } from './ratios.ts';

/** The file of the recorded ratios, within the project. */
export const recordedPath = 'scripts/measure/recorded.json';

/** Reads the recorded ratios of a project; none where it has no file of them. */
export function readRecorded(folder: string): RecordedRatio[] {
  const file = join(folder, recordedPath);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as RecordedRatio[]) : [];
}

/** Writes the recorded ratios of a project. */
export function writeRecorded(folder: string, rows: readonly RecordedRatio[]): void {
  writeFileSync(join(folder, recordedPath), `${JSON.stringify(rows, null, 2)}\n`);
}

/** A measured ratio with its origin; four digits keep differences of the file short. */
export function toRecorded(row: Ratio, commit: string): RecordedRatio {
  const short = (figure: number) => Number(figure.toPrecision(4));
  const figures = { ratio: short(row.ratio), median: short(row.median), baselineMedian: short(row.baselineMedian) };
  return { ...row, ...figures, commit, date: new Date().toISOString().slice(0, 10), machine: describeMachine() };
}

/** What ratios depend on apart from the code. */
export function describeMachine(): string {
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}`;
}

/** The commit that is checked out, and the files that differ from it, one a line; the recorded ratios may differ. */
export function readCommit(folder: string): { readonly commit: string; readonly changed: string } {
  const git = (...args: string[]) => command(['git', '-C', folder, ...args]).trimEnd();
  const changed = git('status', '--porcelain', '--untracked-files=all', '--', '.', `:(exclude)${recordedPath}`);
  return { commit: git('rev-parse', '--short=10', 'HEAD'), changed };
}
