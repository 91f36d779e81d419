import {
  closeSync,
  constants,
  fchmodSync,
  futimesSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { lutimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, ignore, touch } from './disk.ts';
import { listFolder, syncFile, syncFolder } from './folder.ts';
import { withRegular } from './regular-file.ts';

export interface Replacing {
  /** True, the default, if the file must survive a power cut. */
  readonly durable?: boolean;
  /** The modification time, if it is not the time of writing. */
  readonly modified?: Date | null;
  /** The permissions. By default, only the owner may read the file. */
  readonly mode?: number;
}

/**
 * Replaces a whole file, by default readable only for its owner. Afterwards, the new content
 * survives a power cut; after an error, the old one remains. Replaces a link instead of following
 * it.
 *
 * Libraries for it do not fsync the folder, without which the rename may be lost.
 *
 * @throws DiskFailed
 */
export async function replaceFile(
  path: string,
  text: string | Buffer,
  { durable = true, modified, mode }: Replacing = {},
): Promise<void> {
  await renameInto(path, async (temporary) => {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const file = await touch('write', path, async () => openSync(temporary, flags, 0o600));
    try {
      await touch('write', path, async () => writeFileSync(file, text));
      // The umask limits the mode at creation.
      if (mode !== undefined) fchmodSync(file, mode);
      if (modified) futimesSync(file, modified, modified);
      if (durable) await touch('fsync', path, () => syncFile(file));
    } finally {
      closeSync(file);
    }
  });
  if (durable) await syncFolder(dirname(path));
}

/** Preserves the file at `path`, with the content `text`, as `copy`. @throws DiskFailed */
export async function keepCopy(path: string, copy: string, text: string): Promise<void> {
  try {
    await renameInto(copy, (temporary) => touch('link', path, async () => linkSync(path, temporary), linkless));
  } catch (error) {
    if (!linkless.includes(codeOf(error) ?? '')) throw error;
    return replaceFile(copy, text);
  }
  await syncFolder(dirname(copy));
}

/** Errors of link(2) if the file system supports no hard links, or no more of them. */
const linkless = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** Syncs a file with the right content, so that it survives a power cut. @throws DiskFailed */
export async function settleFile(path: string): Promise<void> {
  const file = await touch('read', path, async () => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  try {
    await touch('fsync', path, () => syncFile(file));
  } finally {
    closeSync(file);
  }
  await syncFolder(dirname(path));
}

/** Sets the modification time of a file. @throws DiskFailed */
export async function setTime(path: string, modified: Date): Promise<void> {
  await touch('write', path, () => lutimes(path, modified, modified));
}

/** Renames a file within its folder, durably. Ignores a missing file. @throws DiskFailed */
export async function moveFile(path: string, to: string): Promise<void> {
  await touch('rename', path, async () => renameSync(path, to), ['ENOENT']).catch((error: unknown) =>
    ignore(error, ['ENOENT'], undefined),
  );
  await syncFolder(dirname(path), ['ENOENT']);
}

/** Removes a file durably, with leftovers of {@link replaceFile}. Ignores a missing file. */
export async function removeFile(path: string): Promise<void> {
  await removeLeftovers(path);
  await touch('unlink', path, async () => rmSync(path, { force: true }));
  await syncFolder(dirname(path), ['ENOENT']);
}

/** Removes leftovers of {@link replaceFile}. No other process may write it. @throws DiskFailed */
export async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path);
  const left = (await listFolder(folder)).filter((name) => isTemporary(name, basename(path)));
  for (const each of left) await touch('unlink', path, async () => rmSync(join(folder, each), { force: true }));
}

/**
 * Returns the text of a file, or null if it does not exist.
 *
 * @param judge throws for an untrusted file
 * @throws DiskFailed if it exists and cannot be read
 * @throws UnreadableFile if it is no regular file
 */
export async function readText(path: string, judge: (stats: Stats) => void = () => {}): Promise<string | null> {
  const read = (file: number, stats: Stats) => {
    judge(stats);
    return readFileSync(file, 'utf8');
  };
  try {
    return await withRegular(path, read, ['ENOENT']);
  } catch (error) {
    return ignore(error, ['ENOENT'], null);
  }
}

/** Renames what `make` creates at a temporary path. Always removes the temporary file. */
async function renameInto(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  const clear = () => touch('unlink', path, async () => rmSync(temporary, { force: true }));
  await clear();
  try {
    await make(temporary);
    await touch('rename', path, async () => renameSync(temporary, path));
  } finally {
    // If both names belong to the same file, rename(2) does nothing, so the temporary name must be
    // removed. An error of the removal would hide the original error.
    await clear().catch(() => {});
  }
}

function isTemporary(name: string, of: string): boolean {
  return name.startsWith(`${of}.`) && /^\d+\.tmp$/.test(name.slice(of.length + 1));
}
