import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from './settings.ts';

/**
 * Installs Stryker by the lock file next to this file, unless it is installed, and returns its
 * program.
 *
 * @throws where npm fails
 */
export function install(): string {
  const program = join(cache, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const lock = 'package-lock.json';
  const read = (folder: string) => (existsSync(join(folder, lock)) ? readFileSync(join(folder, lock), 'utf8') : '');
  if (existsSync(program) && read(cache) === read(import.meta.dirname)) return program;
  mkdirSync(cache, { recursive: true });
  for (const file of ['package.json', lock]) copyFileSync(join(import.meta.dirname, file), join(cache, file));
  // Its peer vitest is that of this project. No package of it has an install script.
  const flags = ['--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync('npm', ['ci', ...flags], { cwd: cache, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error('npm could not install Stryker');
  return program;
}
