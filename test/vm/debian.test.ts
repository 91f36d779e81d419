import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { run } from '../lab/run.ts';
import { lastLines, listSteps, readResults, type StepResult } from './job.ts';

const script = join(import.meta.dirname, '../../scripts/vm-test');

/** The host has a limit of its own, which is shorter. */
const timeoutMs = 560_000;

/** A token, which unlike the name of a metric has capitals, or what a token or a password is sent behind. */
const leaked = /\bcp[npstu]_(?=[\w-]*[A-Z])[\w-]{20,}|Bearer \S|"password":"/;

describe.each([
  ['a container', 'container', [script, '--container']],
  ['a machine', 'vm', [script]],
] as const)('%s', (_, kind, argv) => {
  let results: readonly StepResult[] = [];
  let traces = '';

  beforeAll(async () => {
    const { stdout, stderr } = await run(argv, {
      timeoutMs,
      env: { ...process.env, CPN_SETUP: 'check' },
      allowFailure: true,
    });
    traces = /^traces: (.*)$/m.exec(stdout)?.[1] ?? '';
    if (!existsSync(traces)) throw new Error(`${argv.join(' ')} came to nothing:\n${stdout}${stderr}`);
    results = readResults(join(traces, 'out')).steps;
  }, timeoutMs + 30_000);

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
    const said = result === undefined ? 'it was not reached' : lastLines(join(traces, 'out', result.log), 60);
    const console = join(traces, 'console.log');
    expect.fail(`${said}\n\n${console} ends with\n${lastLines(console, 20)}`);
  });
});
