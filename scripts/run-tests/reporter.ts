/**
 * Runs inside vitest, and writes every result and every unhandled error to the file that the runner
 * reads. Vitest's own JSON report has no unhandled errors, and lists the tests of a dead worker as
 * pending.
 *
 * @module
 */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type {
  Reporter,
  SerializedError,
  TestModule,
  TestRunEndReason,
  TestSpecification,
  TestSuite,
  Vitest,
} from 'vitest/node';
import { type FileResults, failure, isFailed, REPORT_VARIABLE, type Report, type Result } from './report.ts';

/** Vitest makes one of these for `--reporter=PATH`. */
export default class ReportWriter implements Reporter {
  #specifications: readonly TestSpecification[] = [];
  #report: Report = { files: [], failures: [], isClosed: false };

  onInit(vitest: Vitest): void {
    // Vitest calls these after all teardowns. One that never ends may leave exit status 0.
    vitest.onClose(() => this.#write({ ...this.#report, isClosed: true }));
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#specifications = specifications;
  }

  onTestRunEnd(_: readonly TestModule[], errors: readonly SerializedError[], reason: TestRunEndReason): void {
    const interrupted = reason === 'interrupted' ? [failure('vitest', 'the run was interrupted')] : [];
    this.#write({
      files: this.#specifications.map(describeFile),
      failures: [...errors.map(describeUnhandled), ...interrupted],
      isClosed: false,
    });
    // The report has vitest's results so far. A later failure, as in a teardown, shows in the exit
    // status alone.
    process.exitCode = 0;
  }

  #write(report: Report): void {
    this.#report = report;
    const path = process.env[REPORT_VARIABLE];
    if (path === undefined) throw new Error(`${REPORT_VARIABLE} is not set`);
    writeFileSync(path, JSON.stringify(report));
  }
}

function describeFile({ moduleId, project, testModule }: TestSpecification): FileResults {
  return {
    file: relative(process.cwd(), moduleId),
    project: project.name,
    seconds: testModule === undefined ? 0 : secondsOf(testModule),
    results: testModule === undefined ? [failure('the file', 'vitest has no result of it')] : resultsOf(testModule),
  };
}

/** A failed hook fails its suite, and vitest calls the tests in it skipped. */
function resultsOf(module: TestModule): Result[] {
  const tests = [...module.children.allTests()].flatMap((test): Result[] => {
    const { state, errors } = test.result();
    if (state === 'pending') return [];
    return [{ name: test.fullName, status: state, problem: state === 'failed' ? textOf(errors[0]) : '' }];
  });
  const suites: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()];
  const hooks = suites.flatMap((suite) =>
    suite.errors().map((error) => failure(suite.type === 'suite' ? suite.fullName : 'the file', textOf(error))),
  );
  const results = [...tests, ...hooks];
  const state = module.state();
  if (state === 'pending' || state === 'queued') results.push(failure('the file', 'it did not run to its end'));
  else if (!module.ok() && !results.some(isFailed)) results.push(failure('the file', 'vitest does not say why'));
  return results;
}

function secondsOf(module: TestModule): number {
  const { environmentSetupDuration, prepareDuration, setupDuration, collectDuration, duration } = module.diagnostic();
  return (environmentSetupDuration + prepareDuration + setupDuration + collectDuration + duration) / 1000;
}

function describeUnhandled(error: SerializedError): Result {
  const { type, VITEST_TEST_PATH: path, VITEST_TEST_NAME: test } = error;
  const place = typeof path === 'string' ? relative(process.cwd(), path) : 'vitest';
  const during = typeof test === 'string' ? ` in or after the test "${test}"` : '';
  return failure(`${place}: ${typeof type === 'string' ? type : 'unhandled error'}${during}`, textOf(error));
}

/** An error as its stack shows it, with its causes. */
function textOf(error: SerializedError | undefined): string {
  if (error === undefined) return '';
  const text = error.stack?.includes(error.message) ? error.stack : `${error.message}\n${error.stack ?? ''}`;
  const { cause } = error;
  return cause === undefined || cause === null ? text : `${text}\ncaused by ${textOf(cause)}`;
}
