import { spawnSync } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The files of src to mutate, relative to `root`.
 *
 * @param paths files and folders; without any, what differs from the base of the branch
 * @throws Error where a path does not exist, or where nothing is there to compare with
 */
export function chooseFiles(root: string, paths: readonly string[]): string[] {
  const named = paths.length === 0 ? listChanged(root) : paths.flatMap((path) => listBelow(root, path));
  return [...new Set(named)].filter(isMutable).toSorted();
}

function isMutable(file: string): boolean {
  return /^src\/.*\.tsx?$/.test(file) && !file.endsWith('.d.ts');
}

function listBelow(root: string, path: string): string[] {
  if (!existsSync(join(root, path))) throw new Error(`there is no file or folder ${path}`);
  if (statSync(join(root, path)).isFile()) return [path];
  return globSync(join(path, '**/*.{ts,tsx}'), { cwd: root });
}

/**
 * What differs from origin/main, or without that from the last tag: committed, changed and new
 * files.
 */
function listChanged(root: string): string[] {
  const base = git(root, 'merge-base', 'HEAD', 'origin/main') ?? git(root, 'describe', '--tags', '--abbrev=0');
  if (base === null)
    throw new Error('there is neither origin/main nor a tag to compare with; name files or folders of src');
  const changed = git(root, 'diff', '--name-only', '--diff-filter=d', base, '--', 'src') ?? '';
  const added = git(root, 'ls-files', '--others', '--exclude-standard', '--', 'src') ?? '';
  return `${changed}\n${added}`.split('\n').filter((line) => line !== '');
}

function git(root: string, ...args: string[]): string | null {
  const { status, stdout } = spawnSync('git', ['-C', root, ...args], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
