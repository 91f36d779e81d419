import type { Unsteady } from './part.ts';
import { type FileResults, isFailed, type Result } from './report.ts';

/** The seconds of each project, of which several run side by side, and of the slowest files. */
export function describeTimes(files: readonly FileResults[], slowest = 15): string {
  const projects = Map.groupBy(files, ({ project }) => project);
  const byProject = [...projects].map(([project, own]) => ({
    name: `${project}, ${own.length} files`,
    seconds: own.reduce((sum, { seconds }) => sum + seconds, 0),
  }));
  const byFile = files.map(({ file, project, seconds }) => ({ name: `${file} (${project})`, seconds }));
  return `seconds by project:\n${listTimes(byProject)}slowest files:\n${listTimes(byFile, slowest)}`;
}

function listTimes(times: readonly { name: string; seconds: number }[], most = times.length): string {
  return times
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, most)
    .map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`)
    .join('');
}

/** Each failure of a list, with the first lines of its text. */
export function describeFailures(failures: readonly Result[]): string {
  return failures.map(({ name, problem }) => [`  ${name}`, ...linesOf(problem), ''].join('\n')).join('');
}

/** The frames of vitest and Node lead nowhere. */
function linesOf(problem: string): string[] {
  return problem
    .trim()
    .split('\n')
    .filter((line) => !/^\s+at .*(node_modules\/|node:)/.test(line))
    .slice(0, 12)
    .map((line) => `    ${line}`);
}

/** The failures of a file, each with the name of the file. */
export function nameFailures(file: string, results: readonly Result[]): Result[] {
  return results.filter(isFailed).map((result) => ({ ...result, name: `${file}: ${result.name}` }));
}

/** The last lines of a run: the unsteady files where there are any, and the counts. */
export function describeEnd(results: readonly Result[], unsteady: readonly Unsteady[]): string {
  const count = (wanted: Result['status']) => results.filter(({ status }) => status === wanted).length;
  const names = unsteady.map(({ file }) => file).join(', ');
  const skipped = count('skipped') > 0 ? `, ${count('skipped')} skipped` : '';
  const counts = `${count('passed')} passed, ${count('failed')} failed${skipped}\n`;
  return names === '' ? counts : `${unsteady.length} unsteady: ${names}\n${counts}`;
}
