import { randomUUID } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { platform } from 'node:process';
import { CommandFailed } from '../../core/errors/index.ts';

/** Folders in memory first (file-hierarchy(7)). */
const folders = ['/dev/shm', '/run', '/tmp'];

/** O_TMPFILE of include/uapi/asm-generic/fcntl.h, which Node does not export. */
const tmpfileFlag = 0o20000000 | constants.O_DIRECTORY;

/** A file without a name; it is in memory, so that no call waits for a disk. */
export interface AnonymousFile {
  readonly fd: number;
  close(): void;
}

/**
 * Opens a file without a name, which is deleted when the last process closes it. It replaces a pipe: Node's pipes are sockets, and a
 * tool that opens `/dev/stdin` fails with one (ENXIO).
 */
export function openAnonymousFile(text = '', isLinux = platform === 'linux'): AnonymousFile {
  const fd = isLinux ? openTmpfile() : openUnlinked();
  try {
    // With a position, because the tool shares the offset, which must stay 0.
    if (text !== '') writeSync(fd, text, 0);
    let isOpen = true;
    const close = () => {
      // Another file may have the descriptor since.
      if (isOpen) closeSync(fd);
      isOpen = false;
    };
    return { fd, close };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The first `maxBytes` of the file, whatever its offset. */
export function readAnonymousFile({ fd }: AnonymousFile, maxBytes: number): string {
  const buffer = Buffer.allocUnsafe(Math.min(fstatSync(fd).size, maxBytes));
  return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0));
}

/** Without O_TMPFILE: removes the name before anything is written. */
function openUnlinked(): number {
  const path = join(tmpdir(), `cpn-${randomUUID()}`);
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  try {
    const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    rmSync(path);
    return fd;
  } catch (error) {
    throw new CommandFailed('opening an anonymous file', null, (error as Error).message);
  }
}

function openTmpfile(): number {
  const problems: string[] = [];
  for (const folder of folders) {
    try {
      return openSync(folder, constants.O_RDWR | tmpfileFlag, 0o600);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  throw new CommandFailed('opening an anonymous file', null, problems.join('; '));
}
