/**
 * The rules for other users' access to our files:
 *
 * - A folder or file of a user other than root and ours is refused: that user can change it.
 * - A state or login that others can write is refused, because another user may have written it. An
 *   operator must check it.
 * - A file that others can only read is closed, with a warning: they may have read its secrets.
 * - A folder of state or locks that others can write in is closed, with a warning. Its files of
 *   other users are refused by their owner. A sticky folder is shared on purpose, and unchanged.
 * - Other programs use the folder of wg-quick files too, so its mode stays, with a warning. A file
 *   in it is never trusted, only replaced if it differs.
 *
 * @module
 */
import { lstatSync, readFileSync, type Stats, statSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { NotOurs, UnreadableFile } from '../../core/errors/index.ts';
import { replaceFile } from './atomic-file.ts';
import { ignore, touch } from './disk.ts';
import { withRegular } from './regular-file.ts';

/** Receives a sentence that describes what was open to other users. */
export type OnExposure = (trouble: string) => void;

/** @throws UnreadableFile if another user may have written the file */
export function refuseForeign(path: string, { mode, uid }: Stats): void {
  if (!isTrusted(uid)) {
    throw new UnreadableFile(path, `belongs to user ${uid}`, `check its content, then type: chown root ${path}`);
  }
  if ((mode & 0o022) !== 0) {
    const problem = `can be written by others (mode ${formatMode(mode)})`;
    throw new UnreadableFile(path, problem, `check that no other user changed it, then type: chmod 600 ${path}`);
  }
}

/**
 * Refuses another user's folder, or a link to it. Closes our folder if others can write in it.
 *
 * @param isShared true if other programs keep files there; then its mode stays, with a warning
 * @throws NotOurs
 * @throws DiskFailed
 */
export async function secureFolder(path: string, isShared: boolean, onExposure: OnExposure): Promise<void> {
  const looks = await touch('read', path, async () => [lstatSync(path), statSync(path)]);
  const stranger = looks.find(({ uid }) => !isTrusted(uid));
  if (stranger) {
    throw new NotOurs(`the folder of user ${stranger.uid}`, path, 'check who made it, and remove it or name another');
  }
  const folder = looks[1];
  if (folder === undefined || !isOpenFolder(folder)) return;
  const { mode } = folder;
  const open = `others could write in ${path} (mode ${formatMode(mode)})`;
  if (isShared) return onExposure(`${open}, and wg-quick runs commands from there as root; type: chmod go-w ${path}`);
  await touch('write', path, () => chmod(path, mode & 0o7755));
  onExposure(`${open}; cpn has closed it`);
}

/** A file that may hold secrets. Its content is trusted only if `isOwn`: only cpn writes it. */
export interface Guarded {
  readonly path: string;
  readonly isOwn: boolean;
}

/**
 * Closes a file that others can read, by replacing it with the same text. Ignores a missing or
 * closed file. Also ignores our own file if others can write it: an operator must check that file.
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
    `others could read ${path} (mode ${formatMode(found.mode)}), which holds secrets; cpn has closed it, but replace each secret that another user may have read`,
  );
}

/** True if {@link closeFile} or {@link secureFolder} would close something. Never throws. */
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

/** True for root and for the user of this process. */
function isTrusted(uid: number): boolean {
  return uid === 0 || uid === process.geteuid?.();
}

function formatMode(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}
