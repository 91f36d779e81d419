/** Runs the scenario of `test/vm/guest` in a machine or container, and prints how each step went:   node scripts/vm-test.ts [--container] */
import { dirname, join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { whyNot } from '../test/vm/image.ts';
import { lastLines, listSteps, readResults } from '../test/vm/job.ts';
import { runScenario } from '../test/vm/run-scenario.ts';

const { values } = parseArgs({ options: { container: { type: 'boolean', default: false } } });
const say = (text: string) => process.stdout.write(`${text}\n`);
const obstacle = whyNot();
if (obstacle !== null) {
  process.stderr.write(`scripts/vm-test cannot run here: ${obstacle}\n`);
  process.exit(1);
}

const kind = values.container ? 'container' : 'vm';
const names = listSteps(kind);
const started = performance.now();
const { console, out } = await runScenario(kind, say);
say(`traces: ${dirname(out)}`);
const { steps, figures } = readResults(out);
for (const name of names) {
  const result = steps.find(({ step }) => step === name);
  const mark =
    result === undefined ? styleText('yellow', '-') : result.ok ? styleText('green', '✓') : styleText('red', '✗');
  say(`${mark} ${name}${result?.ms ? `  ${result.ms} ms` : ''}`);
  if (result?.ok === false) say(lastLines(join(out, result.log), 60));
}
for (const { figure, value } of figures) say(`${figure}: ${value}`);
const failed = names.length - steps.filter(({ ok }) => ok).length;
if (failed > 0) say(`the console says:\n${lastLines(console, 40)}\nall that was left is in ${out}`);
say(
  `${steps.length - steps.filter(({ ok }) => !ok).length} steps passed, ${failed} did not; ${Math.round((performance.now() - started) / 1000)} s`,
);
process.exitCode = failed > 0 ? 1 : 0;
