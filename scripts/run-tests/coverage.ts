import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Where vitest's "json-summary" puts its numbers. */
const SUMMARY = 'coverage/coverage-summary.json';

interface Count {
  readonly total: number;
  readonly covered: number;
}

interface FileCoverage {
  readonly lines: Count;
  readonly branches: Count;
}

/** Lines and branches that ran, one line for each folder of `src` and one for all of it. */
export function describeCoverage(root: string): string {
  const { total, ...files } = JSON.parse(readFileSync(join(root, SUMMARY), 'utf8')) as Record<string, FileCoverage>;
  const areas = Map.groupBy(Object.entries(files), ([path]) => areaOf(relative(root, path)));
  const rows = [...areas]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([area, own]) =>
      describeRow(
        area,
        own.map(([, file]) => file),
      ),
    );
  const all = total === undefined ? [] : [describeRow('all', [total])];
  return ['coverage of src', ...rows, ...all].join('\n');
}

function areaOf(path: string): string {
  const [, area = '', ...rest] = path.split('/');
  return rest.length > 0 ? area : path;
}

function describeRow(name: string, files: readonly FileCoverage[]): string {
  const lines = describeShare(files.map((file) => file.lines));
  const branches = describeShare(files.map((file) => file.branches));
  return `  ${name.padEnd(14)}  lines ${lines.padEnd(22)}  branches ${branches}`;
}

function describeShare(counts: readonly Count[]): string {
  const total = counts.reduce((sum, count) => sum + count.total, 0);
  const covered = counts.reduce((sum, count) => sum + count.covered, 0);
  const percent = total === 0 ? 100 : (100 * covered) / total;
  return `${percent.toFixed(1)} % (${covered}/${total})`;
}
