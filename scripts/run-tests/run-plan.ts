import { runCheck, runChecks } from './check.ts';
import { describeCoverage } from './coverage.ts';
import { type PartReport, runPart } from './part.ts';
import type { Plan } from './plan.ts';
import { isFailed } from './report.ts';
import { describeEnd, describeFailures, describeTimes, nameFailures } from './summary.ts';

/** Runs checks and tests, prints the results, and returns the exit status. */
export async function runPlan(plan: Plan): Promise<number> {
  const { build, checks, parts, mostUnsteady = Number.POSITIVE_INFINITY } = plan;
  const started = performance.now();
  const built = build === undefined ? [] : [await runCheck(build)];
  const checking = runChecks(checks);
  const reports: PartReport[] = [];
  for (const list of parts) reports.push(...(await Promise.all(list.map(runPart))));
  const checked = [...built, ...(await checking)];

  const files = reports.flatMap((report) => report.files);
  const unsteady = reports.flatMap((report) => report.unsteady);
  const others = [...checked, ...reports.flatMap((report) => report.failures)];
  const results = [...files.flatMap((file) => file.results), ...others];
  const failed = [...files.flatMap((each) => nameFailures(each.file, each.results)), ...others.filter(isFailed)];
  const failedAtFirst = unsteady.flatMap((each) => nameFailures(each.file, each.failures));

  if (files.length > 1) print(describeTimes(files));
  if (parts.flat().some(({ measuresCoverage }) => measuresCoverage)) print(describeCoverage(process.cwd()));
  if (unsteady.length > 0) print(`failed at first:\n${describeFailures(failedAtFirst)}`);
  if (failed.length > 0) print(`failed:\n${describeFailures(failed)}`);
  print(`the whole run: ${Math.round((performance.now() - started) / 1000)} s`);
  print(describeEnd(results, unsteady));
  return statusOf(failed.length, unsteady.length, mostUnsteady);
}

/** The exit status of a run with so many failures and unsteady files. */
export function statusOf(failed: number, unsteady: number, mostUnsteady: number): 0 | 1 {
  return failed > 0 || unsteady > mostUnsteady ? 1 : 0;
}

function print(text: string): void {
  process.stdout.write(`\n${text.trimEnd()}\n`);
}
