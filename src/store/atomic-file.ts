import { constants } from 'node:fs';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Replaces a file as a whole, readable for its owner alone: after this returns, the new content survives a power cut;
 * if it does not return, the old content is still there. A link in its place is replaced, not followed.
 *
 * By hand, because the libraries for it do not fsync the folder, without which the rename itself may be lost.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  await rm(temporary, { force: true });
  try {
    const file = await open(temporary, flags, 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Removes a file for good; one that is gone already is no error. */
export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncFolder(dirname(path)).catch(ignoreMissing);
}

/** The text of a file, or null when there is none. */
export async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    ignoreMissing(error);
    return null;
  }
}

/** Makes a folder that only its owner can enter; returns the folders that were not there before, the outermost first. */
export async function makeFolder(path: string): Promise<string[]> {
  const topmost = await mkdir(path, { recursive: true, mode: 0o700 });
  if (topmost === undefined) return [];
  const made: string[] = [];
  for (let folder = path; folder.length >= topmost.length; folder = dirname(folder)) made.unshift(folder);
  return made;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
