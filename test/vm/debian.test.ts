import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { run } from '../lab/run.ts';
import { lastLines, listSteps, readResults, type StepResult } from './job.ts';

const script = join(import.meta.dirname, '../../scripts/vm-test');

/** The image may have to be built, and the host has a limit of its own, which is shorter. */
const timeoutMs = 560_000;

describe.each([
  ['a container', 'container', [script, '--container']],
  ['a machine', 'vm', [script]],
] as const)('%s', (_, kind, argv) => {
  let results: readonly StepResult[] = [];
  let traces = '';

  beforeAll(async () => {
    const { stdout, stderr } = await run(argv, { timeoutMs, allowFailure: true });
    traces = /^traces: (.*)$/m.exec(stdout)?.[1] ?? '';
    if (!existsSync(traces)) throw new Error(`${argv.join(' ')} came to nothing:\n${stdout}${stderr}`);
    results = readResults(join(traces, 'out')).steps;
  }, timeoutMs + 30_000);

  it.each(listSteps(kind))('%s', (name) => {
    const result = results.find(({ step }) => step === name);
    if (result?.ok === true) return;
    const said = result === undefined ? 'it was not reached' : lastLines(join(traces, 'out', result.log), 60);
    const console = join(traces, 'console.log');
    expect.fail(`${said}\n\n${console} ends with\n${lastLines(console, 20)}`);
  });
});
