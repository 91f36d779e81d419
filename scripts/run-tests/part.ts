import { resolve } from 'node:path';
import { type FileResults, isFailed, type Report, type Result } from './report.ts';
import { runVitest } from './vitest.ts';

/** Tests that run side by side in one vitest. */
export interface Part {
  /** Vitest's projects, or `!name` for all but one; all of them when empty. */
  readonly projects: readonly string[];
  /** Only files whose path contains one of these words; all files when empty. */
  readonly words: readonly string[];
  readonly measuresCoverage?: boolean;
  /** The most workers; those of the configuration where absent. */
  readonly workers?: number;
}

/** A file that failed, and then passed alone. */
export interface Unsteady {
  readonly file: string;
  /** How it failed. */
  readonly failures: readonly Result[];
}

/** The results of a part, where the second run of a file has replaced the first. */
export interface PartReport extends Report {
  readonly unsteady: readonly Unsteady[];
}

/** More failed files than that have a cause other than a busy machine. */
const MOST_SECOND_RUNS = 6;

/** Runs the tests of a part; each file in which a test fails runs a second time, alone. */
export async function runPart(part: Part): Promise<PartReport> {
  const { projects, words, measuresCoverage = false, workers } = part;
  const options = projects.map((name) => `--project=${name}`);
  const once = [
    ...(measuresCoverage ? ['--coverage'] : []),
    ...(workers === undefined ? [] : [`--maxWorkers=${workers}`]),
  ];
  const first = await runVitest([...options, ...once, ...words]);
  const suspects = [...new Set(first.files.filter(hasFailed).map(({ file }) => file))];
  if (suspects.length === 0 || suspects.length > MOST_SECOND_RUNS) return { ...first, unsteady: [] };

  process.stdout.write(`\na second time, alone: ${suspects.join(' ')}\n\n`);
  const paths = suspects.map((file) => resolve(file));
  const second = await runVitest([...options, '--no-file-parallelism', ...paths]);
  const files = first.files.map((each) =>
    suspects.includes(each.file) ? (findSame(second.files, each) ?? each) : each,
  );
  const stillFailed = new Set(files.filter(hasFailed).map(({ file }) => file));
  const unsteady = suspects
    .filter((file) => !stillFailed.has(file))
    .map((file) => ({ file, failures: first.files.filter((each) => each.file === file).flatMap(failuresOf) }));
  const isClosed = first.isClosed && second.isClosed;
  return { files, failures: [...first.failures, ...second.failures], isClosed, unsteady };
}

function findSame(files: readonly FileResults[], { file, project }: FileResults): FileResults | undefined {
  return files.find((each) => each.file === file && each.project === project);
}

function failuresOf({ results }: FileResults): Result[] {
  return results.filter(isFailed);
}

function hasFailed(file: FileResults): boolean {
  return failuresOf(file).length > 0;
}
