import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DiskFailed, WrongUsage } from '../../core/errors/index.ts';

/** Sees to it, before anything is asked of a service, that its reply can be saved there; throws WrongUsage where it cannot. */
export async function checkPlace(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) throw new WrongUsage(`--output names ${path}, which is a folder; name a file`);
  const place = found === null || found.isFile() ? dirname(path) : path;
  await access(place, constants.W_OK).catch(({ code }: NodeJS.ErrnoException) => {
    throw new WrongUsage(`--output names ${path}, but ${place} cannot be written to (${code}); name another place`);
  });
}

/**
 * Writes a body to a file, whole or not at all: into a temporary file next to it, which is renamed at the end. What is no regular file,
 * such as /dev/null or a pipe, is written to as it is. Throws DiskFailed, or what reading the body throws.
 */
export async function saveReply(path: string, body: AsyncIterable<Uint8Array>): Promise<void> {
  const place = await realpath(path).catch(() => path);
  const found = await stat(place).catch(() => null);
  const isDirect = found !== null && !found.isFile();
  const file = isDirect ? place : `${place}.${randomUUID().slice(0, 8)}.part`;
  try {
    const handle = await open(file, isDirect ? 'w' : 'wx');
    await pipeline(body, handle.createWriteStream());
    if (!isDirect) await rename(file, place);
  } catch (error) {
    if (!isDirect) await rm(file, { force: true });
    throw isSystemError(error) ? new DiskFailed('write', path, error) : error;
  }
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'errno' in error;
}
