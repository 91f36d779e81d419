import { type Outcome, Process, ProcessError, type ProcessOptions } from './process.ts';

/** Options of a whole run. */
export interface RunOptions extends ProcessOptions {
  /** SIGKILL after this many milliseconds; 15,000 by default. */
  readonly timeoutMs?: number | undefined;
  /** True to return a failure as any other outcome instead of throwing. */
  readonly allowFailure?: boolean | undefined;
}

/** Runs a program to its end. Throws a {@link ProcessError} when it fails, unless `allowFailure` is set. */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const timeoutMs = options.timeoutMs ?? 15_000;
  const started = performance.now();
  const program = new Process(argv, options);
  const outcome = await program.endWithin(timeoutMs);
  if (outcome.signal === 'SIGKILL' && performance.now() - started >= timeoutMs) {
    throw new ProcessError(`${program.label}: took longer than ${timeoutMs} ms`, outcome);
  }
  return failIfUnwanted(program.label, outcome, options.allowFailure);
}

/** The outcome itself; throws a {@link ProcessError} for a failure, unless `allowFailure` is set. */
export function failIfUnwanted(label: string, outcome: Outcome, allowFailure = false): Outcome {
  if (outcome.exitCode === 0 || allowFailure) return outcome;
  const how = outcome.exitCode === null ? `ended by ${outcome.signal}` : `exit code ${outcome.exitCode}`;
  throw new ProcessError(`${label}: ${how}`, outcome);
}
