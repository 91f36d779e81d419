import type { PassReport } from '../../app/networks/pass-report.ts';
import { exitCodeOf, exitCodes } from '../exit-code.ts';
import { describeWithLines } from './change-text.ts';
import { bold, noNetwork, note, print, printError, printJson, warn } from './output.ts';

export interface Showing {
  readonly json: boolean;
  /** The text for an interface without changes. */
  readonly nothing: string;
  /** The exit code if there are changes. */
  readonly exitCode: number;
  /** True if a pass with the stored map, without the newest one, counts as a failure. */
  readonly needsSync?: boolean;
}

/** Shows actual or planned changes. Returns the exit code, that of the first failure if any. */
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

/** The JSON of a pass, a contract for scripts. `error` is also set if the stored map was used. */
function reportToJson({ interface: link, changes, failure, unsynced }: PassReport) {
  const error = failure ?? unsynced;
  return { interface: link, changes, ...(error && { error: error.message }) };
}
