/**
 * Who else may touch what this program keeps, and what is done about it:
 *
 * - A folder or file of a user who is neither root nor we is refused: that user can change it at any time.
 * - A state or a login that others may write is refused, since nobody knows any more who wrote it; a person looks at it.
 * - A file that others may only read is closed to them, and said to have been open: what it holds may be known.
 * - A folder of state or of the lock that others may write in is closed to them, and said to have been open; files of theirs in
 *   it are refused by their owner. One with the sticky bit is shared on purpose, and left as it is.
 * - The folder of wg-quick files is not ours alone: a person is told, and its mode stays. A file in it is never believed, only
 *   replaced where it differs.
 *
 * @module
 */
import type { Stats } from 'node:fs';
import { chmod, type FileHandle, lstat, stat } from 'node:fs/promises';
import { NotOurs, UnreadableFile } from '../core/errors.ts';
import { replaceFile } from './atomic-file.ts';
import { ignore, touch } from './disk.ts';
import { withRegular } from './regular-file.ts';

/** Is told in a sentence what was open to others. */
export type OnExposure = (trouble: string) => void;

/** @throws UnreadableFile for a file that somebody else may have written */
export function refuseForeign(path: string, { mode, uid }: Stats): void {
  if (!isTrusted(uid)) {
    throw new UnreadableFile(path, `belongs to user ${uid}`, `see what it holds, then type: chown root ${path}`);
  }
  if ((mode & 0o022) !== 0) {
    const problem = `can be written by others (mode ${formatMode(mode)})`;
    throw new UnreadableFile(path, problem, `see that nobody changed it, then type: chmod 600 ${path}`);
  }
}

/**
 * Refuses a folder of somebody else, also behind a link of somebody else; closes one of ours that others may write in.
 *
 * @param isShared whether others than this program keep files there; then its mode stays, and a person is told
 * @throws NotOurs
 * @throws DiskFailed
 */
export async function secureFolder(path: string, isShared: boolean, onExposure: OnExposure): Promise<void> {
  const looks = await Promise.all([lstat, stat].map((look) => touch('read', path, () => look(path))));
  const stranger = looks.find(({ uid }) => !isTrusted(uid));
  if (stranger) {
    throw new NotOurs(`the folder of user ${stranger.uid}`, path, 'see who made it, and remove it or name another');
  }
  const folder = looks[1];
  if (folder === undefined || !isOpenFolder(folder)) return;
  const { mode } = folder;
  const open = `others could write in ${path} (mode ${formatMode(mode)})`;
  if (isShared) return onExposure(`${open}, and what stands there wg-quick obeys as root; type: chmod go-w ${path}`);
  await touch('write', path, () => chmod(path, mode & 0o7755));
  onExposure(`${open}; it is closed to them now`);
}

/** A file that may hold secrets, and whether what stands in it is taken for true. */
export interface Guarded {
  readonly path: string;
  readonly isBelieved: boolean;
}

/**
 * Closes a file that others may read, by a new one with the same text; one that is not there, or is closed, stays as it is, and one
 * that is believed and that others may write is left for a person to see.
 *
 * @throws DiskFailed
 * @throws UnreadableFile
 */
export async function closeFile({ path, isBelieved }: Guarded, onExposure: OnExposure): Promise<void> {
  const read = async (file: FileHandle, stats: Stats) =>
    isClosable(stats, isBelieved) ? { mode: stats.mode, text: await file.readFile('utf8') } : null;
  const found = await withRegular(path, read, ['ENOENT']).catch((error) => ignore(error, ['ENOENT'], null));
  if (found === null) return;
  await replaceFile(path, found.text);
  onExposure(
    `others could read ${path} (mode ${formatMode(found.mode)}), which holds secrets; it is closed to them now, but change what somebody may have read`,
  );
}

/** Whether there is something for {@link closeFile} or {@link secureFolder} to close. Never throws. */
export async function isExposed(folder: string, files: readonly Guarded[]): Promise<boolean> {
  const looks = files.map(async ({ path, isBelieved }) => {
    const stats = await lstat(path);
    return stats.isFile() && isClosable(stats, isBelieved);
  });
  const found = [stat(folder).then(isOpenFolder), ...looks].map((look) => look.catch(() => false));
  return (await Promise.all(found)).includes(true);
}

function isClosable({ mode, uid }: Stats, isBelieved: boolean): boolean {
  if (!isBelieved) return (mode & 0o077) !== 0 || !isTrusted(uid);
  return (mode & 0o077) !== 0 && (mode & 0o022) === 0 && isTrusted(uid);
}

function isOpenFolder({ mode }: Stats): boolean {
  return (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
}

/** Of root, or of this process. */
function isTrusted(uid: number): boolean {
  return uid === 0 || uid === process.geteuid?.();
}

function formatMode(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}
