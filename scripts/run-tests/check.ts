import { execFile } from 'node:child_process';
import { failure, type Result } from './report.ts';

/** A program that passes when it exits with 0. */
export interface Check {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
}

/** Runs checks one after the other. */
export async function runChecks(checks: readonly Check[]): Promise<Result[]> {
  const results: Result[] = [];
  for (const check of checks) results.push(await runCheck(check));
  return results;
}

/** Runs a check quietly; when it fails, shows all that it printed. */
export async function runCheck({ name, argv }: Check): Promise<Result> {
  const started = performance.now();
  const [file, ...args] = argv;
  const { failed, output } = await runQuietly(file, args);
  if (!failed) {
    const ms = Math.round(performance.now() - started);
    process.stdout.write(`✓ ${name.padEnd(18)} ${String(ms).padStart(5)} ms\n`);
    return { name, status: 'passed', problem: '' };
  }
  process.stdout.write(`${output}\n✗ ${name}: ${argv.join(' ')}\n`);
  return failure(name, argv.join(' '));
}

function runQuietly(file: string, args: readonly string[]): Promise<{ failed: boolean; output: string }> {
  return new Promise((resolve) => {
    const options = { encoding: 'utf8', maxBuffer: Number.POSITIVE_INFINITY } as const;
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      const why = typeof error?.code === 'number' ? '' : (error?.message ?? '');
      resolve({ failed: error !== null, output: `${stdout}${stderr}${why}` });
    });
    child.stdin?.end();
  });
}
