import { spawnSync } from 'node:child_process';

/**
 * Runs a tool of the build to its end and returns its stdout; its stderr is printed only
 * when it fails.
 */
export function command(
  argv: readonly string[],
  options: { cwd?: string; environment?: NodeJS.ProcessEnv } = {},
): string {
  const [file = '', ...args] = argv;
  const { status, signal, error, stdout, stderr } = spawnSync(file, args, {
    cwd: options.cwd,
    env: { ...process.env, LC_ALL: 'C.UTF-8', TZ: 'UTC', ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    timeout: 30 * 60_000,
  });
  if (error !== undefined && status === null)
    throw new Error(`${file}: ${error.message}; scripts/setup installs what is missing`);
  if (status !== 0) throw new Error(`${argv.join(' ')}: ended with ${status ?? signal}\n${stdout}${stderr}`);
  return stdout;
}
