import type { PassReport } from '../app/reconcile.ts';
import type { Change, ChangeValue } from '../core/change.ts';
import { printable } from '../core/errors.ts';
import { exitCodeOf, exitCodes } from './exit-code.ts';
import { noNetwork } from './no-network.ts';
import { bold, dim, green, note, print, printError, printJson, red, warn, yellow } from './output.ts';

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
  for (const { interface: link, changes, failure, unsynced } of reports) {
    if (unsynced) warn(`${link} goes by the last known map: ${unsynced.message}`);
    if (failure) {
      printError(failure);
    } else if (!json) {
      const same = unsynced ? 'is as the last known map wants it' : nothing;
      print(changes.length === 0 ? `${bold(link)} ${same}` : [bold(link), ...changes.map(describe)].join('\n'));
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

/** One change as one line: sign, what, from what to what, and why. */
export function describe({ action, kind, target, before, after, reason }: Change): string {
  const sign = { add: green('+'), remove: red('-'), update: yellow('~') }[action];
  const values = [before, after].filter((value) => value !== null).map(describeValue);
  return `  ${sign} ${kind} ${printable(target)}  ${printable(values.join(' → '))}  ${dim(`(${printable(reason)})`)}`;
}

function describeValue(value: ChangeValue): string {
  if (value === null || typeof value !== 'object') return String(value);
  if (isList(value)) return value.join(', ');
  return Object.entries(value)
    .filter(([, field]) => field !== null)
    .map(([name, field]) => `${name} ${describeValue(field)}`)
    .join(' ');
}

function isList(value: object): value is readonly string[] {
  return Array.isArray(value);
}
