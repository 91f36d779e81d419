import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DiskFailed, WrongUsage } from '../../core/errors/index.ts';

/** A new, empty file for confidential content. */
export interface SecretFile {
  readonly path: string;
  /** Resolves once the content survives a power cut. @throws DiskFailed after removing the file */
  write(content: string | Uint8Array): Promise<void>;
  discard(): Promise<void>;
}

/**
 * Creates a file that only its owner can read. Called before costly work, which must not start for
 * an unwritable path. Never replaces an existing file, which may contain the only copy of a key.
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

/** Syncs the folder, without which the name may be lost. Skips an unreadable folder. */
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
