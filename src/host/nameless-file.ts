import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { platform } from 'node:process';
import { CommandFailed } from '../core/errors.ts';

/** Folders in memory first (file-hierarchy(7)): what is handed to a tool need not touch a disk. */
const folders = ['/dev/shm', '/run', '/tmp'];

/** O_TMPFILE of include/uapi/asm-generic/fcntl.h; Node has no name for it. */
const namelessFlag = 0o20000000 | constants.O_DIRECTORY;

/**
 * Opens a file that no folder ever lists and that is gone when the last process closes it. It stands in for a pipe:
 * Node's pipes are sockets, which a tool that opens `/dev/stdin` cannot open (ENXIO).
 */
export async function openNameless(text = '', isLinux = platform === 'linux'): Promise<FileHandle> {
  const file = isLinux ? await openFirst() : await openAndForget();
  try {
    // At a position, so that the offset, which the tool shares, stays at the beginning.
    await file.write(text, 0);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The text of such a file from its beginning, however far it was read or written, but no more than `mostBytes`. */
export async function readNameless(file: FileHandle, mostBytes: number): Promise<string> {
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.allocUnsafe(Math.min(size, mostBytes)), position: 0 });
  return buffer.toString('utf8', 0, bytesRead);
}

/** Other systems know no file that never had a name: it loses it before anything is written. */
async function openAndForget(): Promise<FileHandle> {
  const path = join(tmpdir(), `cpn-${randomUUID()}`);
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  try {
    const file = await open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    await rm(path);
    return file;
  } catch (error) {
    throw new CommandFailed('opening a file without a name', null, (error as Error).message);
  }
}

async function openFirst(): Promise<FileHandle> {
  const problems: string[] = [];
  for (const folder of folders) {
    try {
      return await open(folder, constants.O_RDWR | namelessFlag, 0o600);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  throw new CommandFailed('opening a file without a name', null, problems.join('; '));
}
