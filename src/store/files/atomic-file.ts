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
  /** Whether it is to survive a power cut; true by default. */
  readonly durable?: boolean;
  /** The file's time, where it is not that of the writing. */
  readonly modified?: Date | null;
  /** Who may read it; by default only its owner. */
  readonly mode?: number;
}

/**
 * Replaces a file as a whole, by default readable only for its owner. After this returns, the new content survives a power cut;
 * if it does not return, the old content is still there. A link in its place is replaced, not followed.
 *
 * By hand, because the libraries for it do not fsync the folder, without which the rename itself may be lost.
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
      // The umask limits the mode with which a file is made.
      if (mode !== undefined) fchmodSync(file, mode);
      if (modified) futimesSync(file, modified, modified);
      if (durable) await touch('fsync', path, () => syncFile(file));
    } finally {
      closeSync(file);
    }
  });
  if (durable) await syncFolder(dirname(path));
}

/** Keeps what `path` is now as `copy`, whatever becomes of `path`; `text` is its content. @throws DiskFailed */
export async function keepCopy(path: string, copy: string, text: string): Promise<void> {
  try {
    await renameInto(copy, (temporary) => touch('link', path, async () => linkSync(path, temporary), linkless));
  } catch (error) {
    if (!linkless.includes(codeOf(error) ?? '')) throw error;
    return replaceFile(copy, text);
  }
  await syncFolder(dirname(copy));
}

/** Errors of link(2) on a file system that has no hard links, or no more of them. */
const linkless = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** Syncs a file that has the right content already, so that it survives a power cut. @throws DiskFailed */
export async function settleFile(path: string): Promise<void> {
  const file = await touch('read', path, async () => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  try {
    await touch('fsync', path, () => syncFile(file));
  } finally {
    closeSync(file);
  }
  await syncFolder(dirname(path));
}

/** Sets the time of a file. @throws DiskFailed */
export async function setTime(path: string, modified: Date): Promise<void> {
  await touch('write', path, () => lutimes(path, modified, modified));
}

/** Gives a file another name in its folder, durably; a missing file is no error. @throws DiskFailed */
export async function moveFile(path: string, to: string): Promise<void> {
  await touch('rename', path, async () => renameSync(path, to), ['ENOENT']).catch((error: unknown) =>
    ignore(error, ['ENOENT'], undefined),
  );
  await syncFolder(dirname(path), ['ENOENT']);
}

/** Removes a file durably, and what an interrupted {@link replaceFile} left of it; a missing file is no error. */
export async function removeFile(path: string): Promise<void> {
  await removeLeftovers(path);
  await touch('unlink', path, async () => rmSync(path, { force: true }));
  await syncFolder(dirname(path), ['ENOENT']);
}

/** Removes what interrupted {@link replaceFile}s left of a file, to be called where no other process writes it. @throws DiskFailed */
export async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path);
  const left = (await listFolder(folder)).filter((name) => isTemporary(name, basename(path)));
  for (const each of left) await touch('unlink', path, async () => rmSync(join(folder, each), { force: true }));
}

/**
 * The text of a file, or null when there is none.
 *
 * @param judge throws for a file that is not trusted
 * @throws DiskFailed when it is there and cannot be read
 * @throws UnreadableFile when it is no regular file
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

/** Renames into `path` what `make` puts at the temporary path that it is given; in any case leaves nothing there. */
async function renameInto(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  const clear = () => touch('unlink', path, async () => rmSync(temporary, { force: true }));
  await clear();
  try {
    await make(temporary);
    await touch('rename', path, async () => renameSync(temporary, path));
  } finally {
    // A rename onto another name of the same file does nothing at all (rename(2)); the error of a full disk matters more than this one.
    await clear().catch(() => {});
  }
}

function isTemporary(name: string, of: string): boolean {
  return name.startsWith(`${of}.`) && /^\d+\.tmp$/.test(name.slice(of.length + 1));
}
