/**
 * What one run of vitest writes down: the reporter inside vitest writes it, the runner outside
 * reads it.
 *
 * @module
 */

/** A test, or another failure: of a hook, of a file, or an error outside the tests. */
export interface Result {
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  /** Why it failed; empty otherwise. */
  readonly problem: string;
}

/** The results of a file in one of vitest's projects. */
export interface FileResults {
  /** Relative to the working directory. */
  readonly file: string;
  readonly project: string;
  readonly seconds: number;
  readonly results: readonly Result[];
}

/** The results of a run. */
export interface Report {
  readonly files: readonly FileResults[];
  /** Failures that belong to no test: unhandled errors, and the end of vitest itself. */
  readonly failures: readonly Result[];
  /** Whether vitest came to its end, after all teardowns. */
  readonly isClosed: boolean;
}

/** The environment variable that names the file of the report. */
export const REPORT_VARIABLE = 'CPN_TEST_REPORT';

/** A failure, in the form of a result. */
export function failure(name: string, problem: string): Result {
  return { name, status: 'failed', problem };
}

/** Whether a result is a failure. */
export function isFailed({ status }: Result): boolean {
  return status === 'failed';
}
