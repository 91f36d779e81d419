/**
 * Runs vitest, and writes how many tests passed, failed and were skipped to a file:   node scripts/run-tests.ts COUNTS [WORD…]
 *
 * Tests of simulated hosts share two busy cores with others. A file in which one fails is run a second time, alone: what fails again
 * failed, and what passes then is counted as passed and told of as unsteady, for somebody to mend. Names of what failed come last, where
 * a log that was cut still has them.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** What is read of vitest's own report, which is Jest's. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/** The tests of a run, by file. A file that could not be loaded counts as one test that failed. */
type Files = Map<string, { name: string; status: string; problem: string }[]>;

/** More than that is no matter of a busy machine. */
const mostSecondRuns = 6;

const [counts, ...words] = process.argv.slice(2);
if (counts === undefined) throw new Error('usage: run-tests COUNTS [WORD…]');
const folder = mkdtempSync(join(tmpdir(), 'cpn-tests-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const files = run(words);
const unsteady: string[] = [];
const suspects = [...files].filter(([, tests]) => tests.some(isFailed)).map(([file]) => file);
if (suspects.length > 0 && suspects.length <= mostSecondRuns) {
  process.stdout.write(`\na second time, alone: ${suspects.join(' ')}\n\n`);
  const again = run(['--no-file-parallelism', ...suspects]);
  for (const file of suspects) {
    unsteady.push(...list(file, files.get(file)?.filter(isFailed)));
    files.set(file, again.get(file) ?? [{ name: 'ran not at all', status: 'failed', problem: '' }]);
  }
}

const all = [...files.values()].flat();
const count = (status: string) => all.filter((test) => test.status === status).length;
const skipped = all.length - count('passed') - count('failed');
const failed = [...files].flatMap(([file, tests]) => list(file, tests.filter(isFailed)));
if (unsteady.length > 0) process.stdout.write(`\nfailed at first:\n${unsteady.join('\n')}\n`);
if (failed.length > 0) process.stdout.write(`\nfailed:\n${failed.join('\n')}\n`);
writeFileSync(counts, `${count('passed')} ${Math.max(failed.length, all.length === 0 ? 1 : 0)} ${skipped}\n`);

function run(args: readonly string[]): Files {
  const output = join(folder, 'report.json');
  rmSync(output, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`];
  const { status } = spawnSync('vitest', ['run', ...reporters, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  const report = JSON.parse(readFileSync(output, 'utf8')) as Report;
  const found: Files = new Map();
  for (const { name, status, message, assertionResults } of report.testResults) {
    const file = relative(process.cwd(), name);
    const tests = assertionResults.map((test) => ({
      ...{ name: test.fullName, status: test.status },
      problem: test.failureMessages[0] ?? '',
    }));
    // The tests of a file that runs on both databases stand there twice.
    const known = found.get(file) ?? [];
    const isBroken = status === 'failed' && !tests.some(isFailed);
    const broken = { name: 'could not be run', status: 'failed', problem: message };
    found.set(file, [...known, ...tests, ...(isBroken ? [broken] : [])]);
  }
  const isQuiet = ![...found.values()].flat().some(isFailed);
  // What fails beside the tests, as an error that nobody caught, fails the run.
  if (status !== 0 && isQuiet) found.set('vitest', [{ name: `ended with ${status}`, status: 'failed', problem: '' }]);
  return found;
}

function isFailed({ status }: { readonly status: string }): boolean {
  return status === 'failed';
}

function list(file: string, tests: readonly { name: string; problem: string }[] = []): string[] {
  return tests.map(
    ({ name, problem }) => `  ${file}: ${name.trim()}\n    ${problem.trim().split('\n').slice(0, 4).join('\n    ')}`,
  );
}
