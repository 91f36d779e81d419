import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { run } from '../lab/run.ts';
import { lastLines, listSteps, readResults, type StepResult } from './job.ts';

const script = join(import.meta.dirname, '../../scripts/vm-test');

/** Each host has a limit of its own, which is shorter. */
const timeoutMs = 3_000_000;

/** A token, which unlike the name of a metric has capitals, or what a token or a password is sent behind. */
const leaked = /\bcp[npstu]_(?=[\w-]*[A-Z])[\w-]{20,}|Bearer \S|"password":"/;

/** The output of the one run for both hosts, which share the image and the packages. */
let output = '';
beforeAll(async () => {
  const env = { ...process.env, CPN_SETUP: 'check' };
  const { stdout, stderr } = await run([script, '--container', '--machine'], { timeoutMs, env, allowFailure: true });
  output = `${stdout}${stderr}`;
}, timeoutMs + 30_000);

describe.each([
  ['a container', 'container'],
  ['a machine', 'vm'],
] as const)('%s', (_, kind) => {
  let results: readonly StepResult[] = [];
  let traces = '';

  beforeAll(() => {
    traces = new RegExp(`^${kind}: (.*)$`, 'm').exec(output)?.[1] ?? '';
    if (!existsSync(traces)) throw new Error(`${script} came to nothing:\n${output}`);
    results = readResults(join(traces, 'out')).steps;
  });

  it('leaves no token and no password in what it logged', () => {
    const folder = join(traces, 'out');
    const logs = readdirSync(folder).filter((name) => name.endsWith('.log'));
    expect(logs.length).toBeGreaterThan(10);
    const leaks = logs.filter((name) => leaked.test(readFileSync(join(folder, name), 'utf8')));
    expect(leaks).toEqual([]);
  });

  it.each(listSteps(kind))('%s', (name) => {
    const result = results.find(({ step }) => step === name);
    if (result?.ok === true) return;
    const log = result === undefined ? 'it was not reached' : lastLines(join(traces, 'out', result.log), 60);
    const console = join(traces, 'console.log');
    expect.fail(`${log}\n\n${console} ends with\n${lastLines(console, 20)}`);
  });
});
