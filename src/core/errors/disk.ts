import { getSystemErrorMap } from 'node:util';
import { CpnError } from './cpn-error.ts';

/** A state file or a wg-quick file cannot be read as what it should be; it is left as it is. */
export class UnreadableFile extends CpnError {
  override readonly name = 'UnreadableFile';

  constructor(path: string, problem: string, remedy: string, cause?: unknown) {
    super(`${path} ${problem}; ${remedy}`, { facts: { path, problem }, cause });
  }
}

/** The disk did not do what was asked of it: it is full, read-only or broken, or does not let us. */
export class DiskFailed extends CpnError {
  override readonly name = 'DiskFailed';

  /** @param action what was to be done with `path`, such as `write` */
  constructor(action: string, path: string, { code = 'EIO', errno = 0 }: NodeJS.ErrnoException) {
    const reason = getSystemErrorMap().get(errno)?.[1] ?? 'the disk failed';
    super(
      `cannot ${action} ${path}: ${reason} (${code}); ${diskRemedies[code] ?? 'look at that place, and try again'}`,
      {
        facts: { path, code },
        retry: true,
      },
    );
  }
}

const diskRemedies: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space',
  EDQUOT: 'free some space',
  EROFS: 'mount it writable, and see in the kernel log why it is not',
  EIO: 'see in the kernel log what is wrong with the disk',
  EACCES: 'run as root, or correct the permissions',
  EPERM: 'run as root, or correct the permissions',
};

/** Another cpn is at work on this host. */
export class Locked extends CpnError {
  override readonly name = 'Locked';

  /** @param program what is at work: any command of `cpn`, or the daemon */
  constructor(path: string, pid: string, program: 'cpn' | 'cpn run' = 'cpn') {
    super(`another ${program} (pid ${pid}) holds ${path}; wait for it to end, or stop it`, {
      facts: { path, pid },
      retry: true,
    });
  }
}
