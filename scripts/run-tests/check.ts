import { spawnSync } from 'node:child_process';
import { failure, type Result } from './report.ts';

/** A program that passes when it exits with 0. */
export interface Check {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
}

/** Runs a check quietly; when it fails, shows all that it printed. */
export function runCheck({ name, argv }: Check): Result {
  const started = performance.now();
  const [file, ...args] = argv;
  const { status, error, stdout, stderr } = spawnSync(file, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  if (status === 0) {
    const ms = Math.round(performance.now() - started);
    process.stdout.write(`✓ ${name.padEnd(18)} ${String(ms).padStart(5)} ms\n`);
    return { name, status: 'passed', problem: '' };
  }
  process.stdout.write(`${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}\n✗ ${name}: ${argv.join(' ')}\n`);
  return failure(name, argv.join(' '));
}
