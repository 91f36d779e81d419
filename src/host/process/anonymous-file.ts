import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { platform } from 'node:process';
import { CommandFailed } from '../../core/errors/index.ts';

/** Folders in memory first (file-hierarchy(7)). */
const folders = ['/dev/shm', '/run', '/tmp'];

/** O_TMPFILE of include/uapi/asm-generic/fcntl.h, which Node does not export. */
const tmpfileFlag = 0o20000000 | constants.O_DIRECTORY;

/**
 * Opens a file without a name, which is deleted when the last process closes it. It replaces a pipe: Node's pipes are sockets, and a
 * tool that opens `/dev/stdin` fails with one (ENXIO).
 */
export async function openAnonymousFile(text = '', isLinux = platform === 'linux'): Promise<FileHandle> {
  const file = isLinux ? await openTmpfile() : await openUnlinked();
  try {
    // With a position, because the tool shares the offset, which must stay 0.
    await file.write(text, 0);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The first `maxBytes` of the file, whatever its offset. */
export async function readAnonymousFile(file: FileHandle, maxBytes: number): Promise<string> {
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.allocUnsafe(Math.min(size, maxBytes)), position: 0 });
  return buffer.toString('utf8', 0, bytesRead);
}

/** Without O_TMPFILE: removes the name before anything is written. */
async function openUnlinked(): Promise<FileHandle> {
  const path = join(tmpdir(), `cpn-${randomUUID()}`);
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  try {
    const file = await open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    await rm(path);
    return file;
  } catch (error) {
    throw new CommandFailed('opening an anonymous file', null, (error as Error).message);
  }
}

async function openTmpfile(): Promise<FileHandle> {
  const problems: string[] = [];
  for (const folder of folders) {
    try {
      return await open(folder, constants.O_RDWR | tmpfileFlag, 0o600);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  throw new CommandFailed('opening an anonymous file', null, problems.join('; '));
}
