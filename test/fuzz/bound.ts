import { runInThisContext } from 'node:vm';

/** Many times what a parser takes for the longest text; what takes longer would never have come to its end. */
const BOUND_MS = 5000;

/** The slot through which {@link bounded} hands over what it runs: code under a deadline is given as text. */
declare global {
  var boundedWork: (() => unknown) | undefined;
}

/** Runs `work`, which must not wait for anything, and throws where it does not end: a regular expression too is interrupted. */
export function bounded<Result>(work: () => Result): Result {
  globalThis.boundedWork = work;
  try {
    return runInThisContext('globalThis.boundedWork()', { timeout: BOUND_MS }) as Result;
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
