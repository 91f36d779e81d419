import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

export interface KeptFile {
  readonly path: string;
  readonly kind: 'file' | 'folder';
  /** True if it has keys or tokens: no other user may read it. */
  readonly isSecret: boolean;
}

/** The fields of stat(2) that the check uses. */
export interface FileFacts {
  readonly kind: 'file' | 'folder' | 'other';
  /** The permission bits. */
  readonly mode: number;
  readonly uid: number;
}

/** Null if the file does not exist. Its owner may be root or `user`, who runs this process. */
export function checkFile({ path, kind, isSecret }: KeptFile, facts: FileFacts | null, user: number): Finding | null {
  if (facts === null) return null;
  const { mode, uid } = facts;
  const shown = mode.toString(8).padStart(4, '0');
  if (facts.kind !== kind) {
    return problemFinding(
      'files',
      path,
      `is not a ${kind === 'file' ? 'regular file' : 'folder'}`,
      `ls -ld ${path}, and move it away`,
    );
  }
  if (uid !== 0 && uid !== user) {
    return problemFinding('files', path, `belongs to user ${uid}`, `check its content, then: chown root ${path}`);
  }
  // The sticky bit of a shared folder prevents users from replacing files of others.
  const isWritable = (mode & 0o022) !== 0 && !(kind === 'folder' && (mode & 0o1000) !== 0);
  if (isWritable) {
    return problemFinding(
      'files',
      path,
      `others may write it (mode ${shown})`,
      `check that its content is unchanged, then: chmod go-w ${path}`,
    );
  }
  if (isSecret && kind === 'file' && (mode & 0o077) !== 0) {
    return problemFinding(
      'files',
      path,
      `others may read it (mode ${shown}), and it holds keys`,
      `chmod 600 ${path}, and cpn rotate-key`,
    );
  }
  return okFinding('files', path, `mode ${shown}, of ${uid === 0 ? 'root' : 'this user'}`);
}

export interface LockHolder {
  readonly pid: number;
  readonly alive: boolean;
}

/** Checks whether a daemon runs. `holder` is null if no daemon ever wrote the lock. */
export function checkDaemon(holder: LockHolder | null, networks: number): Finding {
  const checked = 'the daemon';
  if (holder?.alive) return okFinding('daemon', checked, `is running (pid ${holder.pid})`);
  const left =
    holder === null
      ? ''
      : `; the daemon with pid ${holder.pid} ended without a clean stop and left its lock, which blocks no process`;
  if (networks === 0) return okFinding('daemon', checked, `is not needed: no network is joined${left}`);
  return noteFinding(
    'daemon',
    checked,
    `is not running${left}; network changes are not applied and drift is not repaired until the next pass`,
    'systemctl enable --now cpn, or cpn run',
  );
}
