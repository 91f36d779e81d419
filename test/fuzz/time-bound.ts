import { Script } from 'node:vm';

/** Many times what all parsers of a property need for the longest text; what takes longer never ends. */
const BOUND_MS = 10_000;

/** The slot through which {@link bounded} hands over its work: code under a deadline is given as text. */
declare global {
  var boundedWork: (() => unknown) | undefined;
}

const runWork = new Script('globalThis.boundedWork()');

/**
 * Runs `work`, and throws where it does not end: a regular expression too is interrupted. What `work` waits for has no bound. Each bound
 * is a thread of its own, so that work within bounded work has no bound but that one.
 */
export function bounded<Result>(work: () => Result): Result {
  if (globalThis.boundedWork !== undefined) return work();
  globalThis.boundedWork = work;
  try {
    return runWork.runInThisContext({ timeout: BOUND_MS }) as Result;
  } finally {
    globalThis.boundedWork = undefined;
  }
}

/** What `parse` makes of it, or null where it throws one of its own errors; any other error is thrown on. */
export function unlessRefused<Result>(
  refusals: readonly (abstract new (...args: never[]) => Error)[],
  parse: () => Result,
): Result | null {
  try {
    return parse();
  } catch (error) {
    if (refusals.some((each) => error instanceof each)) return null;
    throw error;
  }
}
