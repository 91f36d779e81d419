/**
 * Which other users may access the files of this program, and what follows:
 *
 * - A folder or file of a user other than root and ours is refused: that user can change it at any time.
 * - A state or a login that others may write is refused, since another user may have written it; an operator must check it.
 * - A file that others may only read is closed to them, with a warning: they may have read its secrets.
 * - A folder of state or of the lock that others may write in is closed to them, with a warning; files of theirs in it are refused
 *   by their owner. One with the sticky bit is shared on purpose, and left as it is.
 * - Other programs use the folder of wg-quick files too: its mode stays, with a warning. A file in it is never trusted, only
 *   replaced where it differs.
 *
 * @module
 */
import { lstatSync, readFileSync, type Stats, statSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { NotOurs, UnreadableFile } from '../../core/errors/index.ts';
import { replaceFile } from './atomic-file.ts';
import { ignore, touch } from './disk.ts';
import { withRegular } from './regular-file.ts';

/** Receives a sentence that states what was open to others. */
export type OnExposure = (trouble: string) => void;

/** @throws UnreadableFile for a file that another user may have written */
export function refuseForeign(path: string, { mode, uid }: Stats): void {
  if (!isTrusted(uid)) {
    throw new UnreadableFile(path, `belongs to user ${uid}`, `see what it holds, then type: chown root ${path}`);
  }
  if ((mode & 0o022) !== 0) {
    const problem = `can be written by others (mode ${formatMode(mode)})`;
    throw new UnreadableFile(path, problem, `check that no other user changed it, then type: chmod 600 ${path}`);
  }
}

/**
 * Refuses a folder of another user, also behind a link of another user; closes one of ours that others may write in.
 *
 * @param isShared whether other programs keep files there; then its mode stays, with a warning
 * @throws NotOurs
 * @throws DiskFailed
 */
export async function secureFolder(path: string, isShared: boolean, onExposure: OnExposure): Promise<void> {
  const looks = await touch('read', path, async () => [lstatSync(path), statSync(path)]);
  const stranger = looks.find(({ uid }) => !isTrusted(uid));
  if (stranger) {
    throw new NotOurs(`the folder of user ${stranger.uid}`, path, 'see who made it, and remove it or name another');
  }
  const folder = looks[1];
  if (folder === undefined || !isOpenFolder(folder)) return;
  const { mode } = folder;
  const open = `others could write in ${path} (mode ${formatMode(mode)})`;
  if (isShared) return onExposure(`${open}, and wg-quick runs what is there as root; type: chmod go-w ${path}`);
  await touch('write', path, () => chmod(path, mode & 0o7755));
  onExposure(`${open}; it is closed to them now`);
}

/** A file that may hold secrets, and whether only this program writes it: the content of any other is never trusted. */
export interface Guarded {
  readonly path: string;
  readonly isOwn: boolean;
}

/**
 * Closes a file that others may read, by a new one with the same text; one that is not there, or is closed, stays as it is, and one
 * that is trusted and that others may write is left for an operator to check.
 *
 * @throws DiskFailed
 * @throws UnreadableFile
 */
export async function closeFile({ path, isOwn }: Guarded, onExposure: OnExposure): Promise<void> {
  const read = (file: number, stats: Stats) =>
    isClosable(stats, isOwn) ? { mode: stats.mode, text: readFileSync(file, 'utf8') } : null;
  const found = await withRegular(path, read, ['ENOENT']).catch((error) => ignore(error, ['ENOENT'], null));
  if (found === null) return;
  await replaceFile(path, found.text);
  onExposure(
    `others could read ${path} (mode ${formatMode(found.mode)}), which holds secrets; it is closed to them now, but change what another user may have read`,
  );
}

/** Whether there is something for {@link closeFile} or {@link secureFolder} to close. Never throws. */
export function isExposed(folder: string, files: readonly Guarded[]): boolean {
  const look = (path: string, isOpen: (stats: Stats) => boolean, read = lstatSync) => {
    try {
      const stats = read(path, { throwIfNoEntry: false });
      return stats !== undefined && isOpen(stats);
    } catch {
      return false;
    }
  };
  return (
    look(folder, isOpenFolder, statSync) ||
    files.some(({ path, isOwn }) => look(path, (stats) => stats.isFile() && isClosable(stats, isOwn)))
  );
}

function isClosable({ mode, uid }: Stats, isOwn: boolean): boolean {
  if (!isOwn) return (mode & 0o077) !== 0 || !isTrusted(uid);
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
