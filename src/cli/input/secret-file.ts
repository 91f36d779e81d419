import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DiskFailed, WrongUsage } from '../../core/errors/index.ts';

/** A file that was made for what is to be kept from others, and is empty yet. */
export interface SecretFile {
  readonly path: string;
  /** Resolves when the content survives a power cut. @throws DiskFailed, and the file is gone then */
  write(content: string | Uint8Array): Promise<void>;
  /** Removes it again. */
  discard(): Promise<void>;
}

/**
 * Makes a file that its owner alone can read, before there is anything to put into it: what costs something is not done for a place
 * that cannot be written to. A file that is there already stays, because it may hold the only copy of a key.
 */
export async function makeSecretFile(path: string, flag: string): Promise<SecretFile> {
  let file: FileHandle;
  try {
    file = await open(path, 'wx', 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST')
      throw new WrongUsage(`${flag} names ${path}, which already exists; name another file, or remove it`);
    throw new WrongUsage(`${flag} names ${path}, which cannot be created (${code}); name another path`);
  }
  const discard = async () => {
    await file.close().catch(() => {});
    await rm(path, { force: true });
  };
  await syncName(path).catch(async (error) => {
    await discard();
    throw error;
  });
  return {
    path,
    async write(content) {
      try {
        await file.writeFile(content);
        await file.sync();
        await file.close();
      } catch (error) {
        await discard();
        throw new DiskFailed('write', path, error as NodeJS.ErrnoException);
      }
    },
    discard,
  };
}

/** Syncs the folder of a new file, without which its name may be lost. One that only takes files, and shows none, cannot be opened. */
async function syncName(path: string): Promise<void> {
  const folder = await open(dirname(path)).catch(() => null);
  try {
    await folder?.sync();
  } catch (error) {
    throw new DiskFailed('write', path, error as NodeJS.ErrnoException);
  } finally {
    await folder?.close();
  }
}
