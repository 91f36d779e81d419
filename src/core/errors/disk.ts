import { getSystemErrorMap } from 'node:util';
import { CpnError } from './cpn-error.ts';

/** A state file or a wg-quick file is not valid. It stays unchanged. */
export class UnreadableFile extends CpnError {
  override readonly name = 'UnreadableFile';

  constructor(path: string, problem: string, remedy: string, cause?: unknown) {
    super(`${path} ${problem}; ${remedy}`, { facts: { path, problem }, cause });
  }
}

/** A file operation failed: the disk is full, read-only or broken, or a permission is missing. */
export class DiskFailed extends CpnError {
  override readonly name = 'DiskFailed';

  /** @param action the operation on `path`, such as `write` */
  constructor(action: string, path: string, { code = 'EIO', errno = 0 }: NodeJS.ErrnoException) {
    const reason = getSystemErrorMap().get(errno)?.[1] ?? 'the disk failed';
    super(`cannot ${action} ${path}: ${reason} (${code}); ${diskRemedies[code] ?? 'check that path, then retry'}`, {
      facts: { path, code },
      isRetryable: true,
    });
  }
}

const diskRemedies: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space',
  EDQUOT: 'free some space',
  EROFS: 'mount it writable; the kernel log shows why it is not',
  EIO: 'check the kernel log for disk errors',
  EACCES: 'run as root, or correct the permissions',
  EPERM: 'run as root, or correct the permissions',
};

/** Another cpn process holds the lock of this host. */
export class Locked extends CpnError {
  override readonly name = 'Locked';

  /** @param program the holder: any command of `cpn`, or the daemon */
  constructor(path: string, pid: string, program: 'cpn' | 'cpn run' = 'cpn') {
    super(`another ${program} (pid ${pid}) holds ${path}; wait for it to end, or stop it`, {
      facts: { path, pid },
      isRetryable: true,
    });
  }
}
