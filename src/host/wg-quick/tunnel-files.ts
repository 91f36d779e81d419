import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskFailed, InvalidValue, NotOurs } from '../../core/errors/index.ts';
import { parseTunnelFile, renderTunnelFile, type TunnelFile } from './tunnel-file.ts';

/** The files of the tunnels that are up, one for each, in a folder with mode 0700. */
export interface TunnelFiles {
  path(link: string): string;
  /** Null without a file that cpn wrote. @throws DiskFailed */
  read(link: string): Promise<TunnelFile | null>;
  /** Replaces the file atomically, with mode 0600. @throws DiskFailed @throws NotOurs where others can write to the folder */
  write(link: string, file: TunnelFile): Promise<void>;
  /** Removes the file, and the folder with the last one. */
  remove(link: string): Promise<void>;
  /** The interfaces that have a file. */
  list(): Promise<readonly string[]>;
}

export function tunnelFiles(folder: string): TunnelFiles {
  const path = (link: string) => join(folder, `${link}.conf`);
  return {
    path,
    async read(link) {
      try {
        return parseTunnelFile(await readFile(path(link), 'utf8'));
      } catch (error) {
        if (error instanceof InvalidValue || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
        throw new DiskFailed('read', path(link), error as NodeJS.ErrnoException);
      }
    },
    async write(link, file) {
      const text = renderTunnelFile(file).reveal();
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await checkFolder(folder);
        await replace(path(link), text);
      } catch (error) {
        if (error instanceof NotOurs) throw error;
        throw new DiskFailed('write', path(link), error as NodeJS.ErrnoException);
      }
    },
    async remove(link) {
      await rm(path(link), { force: true });
      await rmdir(folder).catch(() => {});
    },
    list: async () =>
      (await readdir(folder).catch(() => [])).flatMap((name) => /^(.+)\.conf$/.exec(name)?.slice(1) ?? []),
  };
}

/** wg-quick runs commands of the files in this folder, so that only we may write there. Windows has no such modes. */
async function checkFolder(folder: string): Promise<void> {
  const user = process.geteuid?.();
  if (user === undefined) return;
  const stats = await lstat(folder);
  if (stats.isDirectory() && stats.uid === user && (stats.mode & 0o022) === 0) return;
  throw new NotOurs('the folder', folder, 'remove it: no other user may write there');
}

async function replace(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
