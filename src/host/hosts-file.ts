import { constants, type Stats } from 'node:fs';
import { access, readFile, realpath, rm, stat } from 'node:fs/promises';
import { CommandFailed, DiskFailed } from '../core/errors/index.ts';
import type { HostsFile } from '../core/host-state/actual.ts';
import { findBlock, replaceBlock } from '../core/names/hosts-block.ts';
import { stderrOf } from './process/command-error.ts';
import { renameInto, withFile } from './rename-into.ts';

/** hosts(5) */
const defaultPath = '/etc/hosts';

/** Another program may change the file between reading and replacing it. */
const maxAttempts = 3;

/**
 * Errors of rename(2) and open(2) if the file is a mount (containers) or its folder is read-only.
 */
const renameErrors = ['EBUSY', 'EXDEV', 'EROFS', 'EACCES', 'EPERM'];

/** Reads our block, and whether the file is writable. Follows a symbolic link. Never throws. */
export async function readHosts(link: string, path = defaultPath): Promise<HostsFile> {
  try {
    const { target, text, stats } = await loadFile(path);
    const { block, isWhole } = findBlock(text, link);
    const trouble = isWhole ? await findProblem(path, target, stats) : describeDamage(path, link);
    return { block, trouble };
  } catch (error) {
    return { block: null, trouble: describeError(path, error as NodeJS.ErrnoException) };
  }
}

/**
 * Writes our block into the hosts file, or removes it if `block` is null. Keeps all other bytes,
 * the mode and the owner. Atomic, except in place if the file itself is a mount.
 *
 * @throws DiskFailed
 * @throws CommandFailed if our block is damaged, or if another program keeps changing the file
 */
export async function writeHosts(link: string, block: string | null, path = defaultPath): Promise<void> {
  try {
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const loaded = await loadFile(path);
      if (!findBlock(loaded.text, link).isWhole) throw writeFailure(path, describeDamage(path, link));
      if (await replaceFile(loaded, replaceBlock(loaded.text, link, block))) return;
    }
  } catch (error) {
    const { code, errno } = error as Partial<NodeJS.ErrnoException>;
    if (code === undefined || errno === undefined) throw error;
    throw new DiskFailed('write', path, error as NodeJS.ErrnoException);
  }
  throw writeFailure(path, 'another program keeps changing it');
}

/** The file as one character per byte, which preserves text in any encoding. */
interface Loaded {
  /** The path after symbolic links are resolved. */
  readonly target: string;
  readonly text: string;
  readonly stats: Stats;
}

async function loadFile(path: string): Promise<Loaded> {
  const target = await realpath(path);
  const stats = await stat(target);
  if (!stats.isFile()) throw writeFailure(path, `${path} is not a file`);
  return { target, text: await readFile(target, 'latin1'), stats };
}

/** Null if the file is writable. */
async function findProblem(path: string, target: string, { mode }: Stats): Promise<string | null> {
  const shown = target === path ? path : `${path}, which is ${target},`;
  // Root may write read-only files, but such a file is generated, as on NixOS.
  if ((mode & 0o222) === 0) return `${shown} has no write permission (mode ${(mode & 0o777).toString(8)})`;
  return access(target, constants.W_OK).then(
    () => null,
    (error: NodeJS.ErrnoException) => describeError(shown, error),
  );
}

/** Returns false, and changes nothing, if the file changed since it was loaded. */
async function replaceFile({ target, text, stats }: Loaded, next: string): Promise<boolean> {
  const temporary = `${target}.cpn.tmp`;
  // Removes the rest of an interrupted write, even if nothing changes now.
  await rm(temporary, { force: true }).catch(ignoreRenameError);
  if (next === text) return true;
  try {
    return await renameInto(target, next, {
      temporary,
      owner: stats,
      isCurrent: async () => isSame(await stat(target), stats),
    });
  } catch (error) {
    ignoreRenameError(error);
    await overwrite(target, next);
    return true;
  }
}

function ignoreRenameError(error: unknown): void {
  if (!renameErrors.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
}

/** Truncates last: a concurrent reader sees too many lines rather than too few. */
async function overwrite(target: string, text: string): Promise<void> {
  const bytes = Buffer.from(text, 'latin1');
  await withFile(target, constants.O_WRONLY, async (file) => {
    await file.writeFile(bytes);
    await file.truncate(bytes.length);
    await file.sync();
  });
}

function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.size === other.size && one.mtimeMs === other.mtimeMs;
}

function describeDamage(path: string, link: string): string {
  return `one of the lines "# BEGIN cpn ${link}" and "# END cpn ${link}" is missing in ${path}; remove the rest of that block`;
}

function describeError(path: string, error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return `${path} does not exist; create it, even if empty`;
  return error.errno === undefined ? stderrOf(error) || error.message : new DiskFailed('write', path, error).message;
}

function writeFailure(path: string, problem: string): CommandFailed {
  return new CommandFailed(`writing ${path}`, null, problem);
}
