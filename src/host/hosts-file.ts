import { constants, type Stats } from 'node:fs';
import { access, type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { HostsFile } from '../core/actual.ts';
import { CommandFailed, DiskFailed } from '../core/errors.ts';
import { findBlock, replaceBlock } from '../core/hosts-block.ts';
import { saidBy } from './run.ts';

/** Where the resolver of the C library looks (hosts(5)). */
const usualPath = '/etc/hosts';

/** How often a writing begins anew because somebody else wrote meanwhile. */
const mostAttempts = 3;

/** What rename(2) and open(2) say where the file is mounted by itself, as in containers, or its folder is read-only. */
const unrenamable = ['EBUSY', 'EXDEV', 'EROFS', 'EACCES', 'EPERM'];

/** Reads what of the hosts file is ours, and whether it can be changed; a link is followed. Never throws. */
export async function readHosts(link: string, path = usualPath): Promise<HostsFile> {
  try {
    const { target, text, stats } = await load(path);
    const { block, isWhole } = findBlock(text, link);
    const trouble = isWhole ? await findTrouble(path, target, stats) : describeDamage(path, link);
    return { block, trouble };
  } catch (error) {
    return { block: null, trouble: describe(path, error as NodeJS.ErrnoException) };
  }
}

/**
 * Puts our block into the hosts file, or takes it out with a `block` of null; every other byte stays, and so do mode and owner. The
 * file is replaced as a whole, but where it is mounted by itself: there it is written in place.
 *
 * @throws DiskFailed
 * @throws CommandFailed where the file is not as it should be, or somebody else keeps changing it
 */
export async function writeHosts(link: string, block: string | null, path = usualPath): Promise<void> {
  try {
    for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
      const loaded = await load(path);
      if (!findBlock(loaded.text, link).isWhole) throw refuse(path, describeDamage(path, link));
      if (await put(loaded, replaceBlock(loaded.text, link, block))) return;
    }
  } catch (error) {
    const { code, errno } = error as Partial<NodeJS.ErrnoException>;
    if (code === undefined || errno === undefined) throw error;
    throw new DiskFailed('write', path, error as NodeJS.ErrnoException);
  }
  throw refuse(path, 'somebody else keeps changing it');
}

/** The file as it is. Each byte is one character, whatever its encoding is, and so outlives us as it is. */
interface Loaded {
  /** Where the file itself is. */
  readonly target: string;
  readonly text: string;
  readonly stats: Stats;
}

async function load(path: string): Promise<Loaded> {
  const target = await realpath(path);
  const stats = await stat(target);
  if (!stats.isFile()) throw refuse(path, `${path} is not a file`);
  return { target, text: await readFile(target, 'latin1'), stats };
}

/** Null when it can be changed. */
async function findTrouble(path: string, target: string, { mode }: Stats): Promise<string | null> {
  const shown = target === path ? path : `${path}, which is ${target},`;
  // Root may write where nobody is meant to: what a packaging system made for good, such as NixOS, has no such bit.
  if ((mode & 0o222) === 0) return `${shown} is not meant to be written (mode ${(mode & 0o777).toString(8)})`;
  return access(target, constants.W_OK).then(
    () => null,
    (error: NodeJS.ErrnoException) => describe(shown, error),
  );
}

/** False, with nothing changed, when the file is not any more what was loaded. */
async function put({ target, text, stats }: Loaded, next: string): Promise<boolean> {
  const temporary = `${target}.cpn.tmp`;
  try {
    // Also where nothing differs: an earlier writing may have been interrupted.
    await rm(temporary, { force: true });
    if (next === text) return true;
    await fill(temporary, next, stats);
    if (!isSame(await stat(target), stats)) return false;
    await rename(temporary, target);
  } catch (error) {
    if (!unrenamable.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await overwrite(target, next);
    return true;
  } finally {
    await rm(temporary, { force: true }).catch(() => {});
  }
  await withFile(dirname(target), constants.O_RDONLY, (folder) => folder.sync());
  return true;
}

async function fill(temporary: string, text: string, { mode, uid, gid }: Stats): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  await withFile(temporary, flags, async (file) => {
    await file.writeFile(text, 'latin1');
    await file.chown(uid, gid);
    await file.chmod(mode & 0o7777);
    await file.sync();
  });
}

/** Its length is set last: whoever reads meanwhile finds lines too many rather than too few. */
async function overwrite(target: string, text: string): Promise<void> {
  const bytes = Buffer.from(text, 'latin1');
  await withFile(target, constants.O_WRONLY, async (file) => {
    await file.writeFile(bytes);
    await file.truncate(bytes.length);
    await file.sync();
  });
}

async function withFile(path: string, flags: number, work: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, flags, 0o600);
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.size === other.size && one.mtimeMs === other.mtimeMs;
}

function describeDamage(path: string, link: string): string {
  return `of our lines "# BEGIN cpn ${link}" and "# END cpn ${link}" in ${path} one is missing; remove what is left of that block`;
}

function describe(path: string, error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return `${path} is not there; make it, be it empty`;
  return error.errno === undefined ? saidBy(error) || error.message : new DiskFailed('write', path, error).message;
}

function refuse(path: string, problem: string): CommandFailed {
  return new CommandFailed(`writing ${path}`, null, problem);
}
