import { constants, createReadStream } from 'node:fs';
import { access, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DiskFailed, WrongUsage } from '../../core/errors/index.ts';

/** The maximum size of a body that is read into memory. */
const maxHeldBytes = 16 * 1024 * 1024;

/** Null for a pipe or a device. @throws WrongUsage for a folder or unreadable file */
export async function sizeOfFile(path: string, flag: string): Promise<number | null> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw new WrongUsage(`${flag} names ${path}, which is a folder; name a file`);
    return found.isFile() ? found.size : null;
  } catch (error) {
    throw unreadable(error, path, flag);
  }
}

/** The bytes of a file, or of standard input for `-`, up to 16 MiB. */
export async function readBytes(path: string, flag: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of path === '-' ? process.stdin : createReadStream(path)) {
      length += chunk.length;
      if (length > maxHeldBytes)
        throw new WrongUsage(`${flag} holds more than 16 MiB; name a regular file with --input or --form`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw unreadable(error, path, flag);
  }
  return Buffer.concat(chunks, length);
}

/** As {@link readBytes}, as unchanged text. */
export async function readText(path: string, flag: string): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await readBytes(path, flag));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new WrongUsage(`${flag} names ${path}, which is not UTF-8 text; send it with --form`);
  }
}

function unreadable(error: unknown, path: string, flag: string): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : null;
  if (code === null) return error;
  return new WrongUsage(`${flag} names ${path}, which cannot be read (${code}); check the path and its permissions`);
}

/** Checks, before any request, that the reply can be saved. @throws WrongUsage if it cannot */
export async function checkPlace(path: string): Promise<void> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) throw new WrongUsage(`--output names ${path}, which is a folder; name a file`);
  const place = found === null || found.isFile() ? dirname(path) : path;
  await access(place, constants.W_OK).catch(({ code }: NodeJS.ErrnoException) => {
    throw new WrongUsage(`--output names ${path}, but ${place} cannot be written to (${code}); name another place`);
  });
}

/**
 * Replaces a file atomically. Writes directly to other targets, such as /dev/null or a pipe.
 * @throws DiskFailed, and any error of the body
 */
export async function saveReply(path: string, body: AsyncIterable<Uint8Array>): Promise<void> {
  const place = await realpath(path).catch(() => path);
  const found = await stat(place).catch(() => null);
  const isDirect = found !== null && !found.isFile();
  const file = isDirect ? place : `${place}.${crypto.randomUUID().slice(0, 8)}.part`;
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
