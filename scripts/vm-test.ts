/**
 * Runs the scenarios of `test/vm/guest`, and prints how each step went: node scripts/vm-test.ts
 * [--container] [--machine]
 */
import { dirname, join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { whyNot } from '../test/vm/image.ts';
import { lastLines, listSteps, readResults } from '../test/vm/job.ts';
import { runScenarios, type Traces } from '../test/vm/run-scenario.ts';

const { values } = parseArgs({
  options: { container: { type: 'boolean', default: false }, machine: { type: 'boolean', default: false } },
});
const started = performance.now();
const seconds = () => Math.round((performance.now() - started) / 1000);
const say = (text: string) => process.stdout.write(`${text}\n`);
const obstacle = whyNot();
if (obstacle !== null) {
  process.stderr.write(`scripts/vm-test cannot run here: ${obstacle}\n`);
  process.exit(1);
}

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => interrupted.abort(new Error(`interrupted by ${signal}`)));
}

const container = values.container ? (['container'] as const) : [];
const machine = values.machine || !values.container ? (['vm'] as const) : [];
const print = (text: string) => say(`${text} (${seconds()} s)`);
for (const traces of await runScenarios([...container, ...machine], print, interrupted.signal)) {
  if (printSteps(traces) > 0) process.exitCode = 1;
}

/** Prints how the steps of a run went, and returns how many did not pass. */
function printSteps({ kind, console, out }: Traces): number {
  say(`\n${kind}: ${dirname(out)}`);
  const names = listSteps(kind);
  const { steps, figures } = readResults(out);
  for (const name of names) {
    const result = steps.find(({ step }) => step === name);
    const mark =
      result === undefined ? styleText('yellow', '-') : result.ok ? styleText('green', '✓') : styleText('red', '✗');
    say(`${mark} ${name}${result?.ms ? `  ${result.ms} ms` : ''}`);
    if (result?.ok === false) say(lastLines(join(out, result.log), 60));
  }
  for (const { figure, value } of figures) say(`${figure}: ${value}`);
  const passed = steps.filter(({ ok }) => ok).length;
  const failed = names.length - passed;
  if (failed > 0) say(`the console says:\n${lastLines(console, 40)}\nall that was left is in ${out}`);
  say(`${passed} steps passed, ${failed} did not; ${seconds()} s`);
  return failed;
}
