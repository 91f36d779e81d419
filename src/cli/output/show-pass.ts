import type { PassReport } from '../../app/networks/pass-report.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { describeWithLines } from './change-text.ts';
import { bold, noNetwork, note, print, printError, printJson, warn } from './output.ts';

/** How a pass is shown. */
export interface Showing {
  readonly json: boolean;
  /** What is said of an interface without changes. */
  readonly nothing: string;
  /** The exit code when there are changes. */
  readonly exitCode: number;
  /** Whether a pass without the newest map counts as a failure; it went by the last known one all the same. */
  readonly needsSync?: boolean;
}

/** Shows what a pass changed or would change, and returns the exit code: that of a failure, where there was one. */
export function showPass(reports: readonly PassReport[], { json, nothing, exitCode, needsSync }: Showing): number {
  if (json) printJson({ networks: reports.map(reportToJson) });
  else if (reports.length === 0) note(noNetwork);
  for (const report of reports) {
    const { interface: link, changes, failure, unsynced } = report;
    if (unsynced) warn(`${link} uses the stored map: ${unsynced.message}`);
    if (failure) printError(failure);
    if (!json && (failure === null || changes.length > 0)) {
      const same = unsynced ? 'matches the stored map' : nothing;
      const lines = changes.map((change) => describeWithLines(change, report));
      print(changes.length === 0 ? `${bold(link)} ${same}` : [bold(link), ...lines].join('\n'));
    }
  }
  const failures = reports.flatMap(({ failure, unsynced }) => failure ?? (needsSync ? unsynced : null) ?? []);
  if (failures.length > 0) return exitCodeOf(failures[0]);
  return reports.some((report) => report.changes.length > 0) ? exitCode : exitCodes.done;
}

/** A pass as scripts rely on it, with what went wrong in it, or kept the newest map away. */
function reportToJson({ interface: link, changes, failure, unsynced }: PassReport) {
  const error = failure ?? unsynced;
  return { interface: link, changes, ...(error && { error: error.message }) };
}
