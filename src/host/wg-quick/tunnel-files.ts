import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskFailed, InvalidValue, NotOurs } from '../../core/errors.ts';
import { parseTunnelFile, renderTunnelFile, type TunnelFile } from './tunnel-file.ts';

/** The files of the tunnels that are up, one for each, in a folder that only we can enter. */
export interface TunnelFiles {
  path(link: string): string;
  /** Null where there is none, or one that is not of our writing. */
  read(link: string): Promise<TunnelFile | null>;
  /** Replaces the file as a whole, with mode 0600. @throws DiskFailed, NotOurs where the folder is open to others */
  write(link: string, file: TunnelFile): Promise<void>;
  /** Removes the file, and the folder with the last one. */
  remove(link: string): Promise<void>;
  /** The interfaces that have one. */
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

/** Whoever could put a file there could have wg-quick run what he likes. Windows has no such modes, and its own rights. */
async function checkFolder(folder: string): Promise<void> {
  const user = process.geteuid?.();
  if (user === undefined) return;
  const stats = await lstat(folder);
  if (stats.isDirectory() && stats.uid === user && (stats.mode & 0o022) === 0) return;
  throw new NotOurs('the folder', folder, 'remove it: nobody else may write there');
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
