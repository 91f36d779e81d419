import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { platform } from 'node:process';
import { CommandFailed, DiskFailed } from '../../core/errors/index.ts';

/** Folders in memory first (file-hierarchy(7)): that of root alone, which no other user can fill, and that of all users. */
const folders = ['/run', '/dev/shm', '/run', '/tmp'];

/** The type of a file system in memory: TMPFS_MAGIC of include/uapi/linux/magic.h. */
const tmpfs = 0x01021994;

/** A full file system stores whole blocks of what is written, which are no smaller (mkfs.ext4(8), mkfs.xfs(8)). */
const leastBlock = 512;

/** O_TMPFILE of include/uapi/asm-generic/fcntl.h, which Node does not export. */
const tmpfileFlag = 0o20000000 | constants.O_DIRECTORY;

/** A file without a name; it is in memory, so that no call waits for a disk. */
export interface AnonymousFile {
  readonly fd: number;
  /** Where it was opened, for messages. */
  readonly folder: string;
  close(): void;
}

/**
 * Opens a file without a name, which is deleted when the last process closes it. It replaces a pipe: Node's pipes are sockets, and a
 * tool that opens `/dev/stdin` fails with one (ENXIO).
 */
export function openAnonymousFile(text = '', isLinux = platform === 'linux'): AnonymousFile {
  const opened = isLinux ? openTmpfile() : openUnlinked();
  let isOpen = true;
  const close = () => {
    // Another file may have the descriptor since.
    if (isOpen) closeSync(opened.fd);
    isOpen = false;
  };
  try {
    if (text !== '') writeAnonymousFile(opened, text);
    return { ...opened, close };
  } catch (error) {
    close();
    throw error;
  }
}

type OpenedFile = Pick<AnonymousFile, 'fd' | 'folder'>;

/** Replaces what is in the file, whatever its offset. @throws DiskFailed where there is no room for all of it */
export function writeAnonymousFile({ fd, folder }: OpenedFile, text: string): void {
  const bytes = Buffer.from(text);
  try {
    ftruncateSync(fd);
    // With a position, because the tool shares the offset, which must stay 0. What is cut must reach no tool: a full file system
    // stores a part without an error, and the next write fails.
    for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written, undefined, written);
  } catch (error) {
    throw new DiskFailed('write to', folder, error as NodeJS.ErrnoException);
  }
}

/** Tools do not report that their output was cut: where it may have been, there must be room for more. @throws DiskFailed */
export function checkUncut({ fd, folder }: OpenedFile): void {
  const { size } = fstatSync(fd);
  if (size === 0 || size % leastBlock !== 0) return;
  try {
    writeSync(fd, '\n', size);
    ftruncateSync(fd, size);
  } catch (error) {
    throw new DiskFailed('write to', folder, error as NodeJS.ErrnoException);
  }
}

/** The first `maxBytes` of the file, whatever its offset. */
export function readAnonymousFile({ fd }: AnonymousFile, maxBytes: number): string {
  const buffer = Buffer.allocUnsafe(Math.min(fstatSync(fd).size, maxBytes));
  return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0));
}

/** Without O_TMPFILE: removes the name before anything is written. */
function openUnlinked(): OpenedFile {
  const folder = tmpdir();
  const path = join(folder, `cpn-${randomUUID()}`);
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  try {
    const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    rmSync(path);
    return { fd, folder };
  } catch (error) {
    throw new CommandFailed('opening an anonymous file', null, (error as Error).message);
  }
}

function openTmpfile(): OpenedFile {
  const problems: string[] = [];
  for (const [at, folder] of folders.entries()) {
    try {
      // In a container it may be on a disk.
      if (at === 0 && statfsSync(folder).type !== tmpfs) continue;
      return { fd: openSync(folder, constants.O_RDWR | tmpfileFlag, 0o600), folder };
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  throw new CommandFailed('opening an anonymous file', null, problems.join('; '));
}
