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

/** Memory first (file-hierarchy(7)): only root can fill /run; /dev/shm is open to all users. */
const folders = ['/run', '/dev/shm', '/run', '/tmp'];

/** The type of a file system in memory: TMPFS_MAGIC of include/uapi/linux/magic.h. */
const tmpfs = 0x01021994;

/** The least block of a file system (mkfs.ext4(8), mkfs.xfs(8)). A full disk stores whole ones. */
const leastBlock = 512;

/** O_TMPFILE of include/uapi/asm-generic/fcntl.h, which Node does not export. */
const tmpfileFlag = 0o20000000 | constants.O_DIRECTORY;

/** A file without a name, in memory if possible: no call waits for a disk. */
export interface AnonymousFile {
  readonly fd: number;
  /** The folder in which it was opened, for messages. */
  readonly folder: string;
  close(): void;
}

/**
 * Opens a file without a name, which the kernel deletes when the last process closes it. It
 * replaces a pipe: Node's pipes are sockets, on which a tool that opens `/dev/stdin` fails (ENXIO).
 */
export function openAnonymousFile(text = '', isLinux = platform === 'linux'): AnonymousFile {
  const opened = isLinux ? openTmpfile() : openUnlinked();
  let isOpen = true;
  const close = () => {
    // The descriptor may belong to another file by now.
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

/** Replaces the content, regardless of the offset. @throws DiskFailed without room for all of it */
export function writeAnonymousFile({ fd, folder }: OpenedFile, text: string): void {
  const bytes = Buffer.from(text);
  try {
    ftruncateSync(fd);
    // At explicit positions: the tool shares the offset, which must stay 0. No tool may read
    // truncated input: a full file system stores a part without an error, and the next write fails.
    for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written, undefined, written);
  } catch (error) {
    throw new DiskFailed('write to', folder, error as NodeJS.ErrnoException);
  }
}

/**
 * Detects truncated output, which tools do not report: if the size is a multiple of a block, there
 * must be room for another byte. @throws DiskFailed
 */
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

/** Reads the first `maxBytes` of the file, regardless of the offset. */
export function readAnonymousFile({ fd }: AnonymousFile, maxBytes: number): string {
  const buffer = Buffer.allocUnsafe(Math.min(fstatSync(fd).size, maxBytes));
  return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, 0));
}

/** The fallback without O_TMPFILE. Removes the name before anything is written. */
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
      // In a container, /run may be on a disk.
      if (at === 0 && statfsSync(folder).type !== tmpfs) continue;
      return { fd: openSync(folder, constants.O_RDWR | tmpfileFlag, 0o600), folder };
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  throw new CommandFailed('opening an anonymous file', null, problems.join('; '));
}
