import { type Finding, well, worthKnowing, wrong } from './finding.ts';

/** A file or folder that this program keeps, and who may touch it. */
export interface Kept {
  readonly path: string;
  readonly kind: 'file' | 'folder';
  /** Holds keys or tokens: nobody else may even read it. */
  readonly isSecret: boolean;
}

/** What stat(2) tells of it. */
export interface FileFacts {
  readonly kind: 'file' | 'folder' | 'other';
  /** The permission bits. */
  readonly mode: number;
  readonly uid: number;
}

/**
 * Judges who may touch it; null where it is not there.
 *
 * @param user whose process this is, beside root the only one who may own it
 */
export function judgeFile({ path, kind, isSecret }: Kept, facts: FileFacts | null, user: number): Finding | null {
  if (facts === null) return null;
  const { mode, uid } = facts;
  const shown = mode.toString(8).padStart(4, '0');
  if (facts.kind !== kind) {
    return wrong(
      'files',
      path,
      `is no ${kind === 'file' ? 'regular file' : 'folder'}`,
      `ls -ld ${path}, and move it away`,
    );
  }
  if (uid !== 0 && uid !== user) {
    return wrong('files', path, `belongs to user ${uid}`, `see what it holds, then: chown root ${path}`);
  }
  // A shared folder with the sticky bit lets nobody replace what is another's.
  const isWritable = (mode & 0o022) !== 0 && !(kind === 'folder' && (mode & 0o1000) !== 0);
  if (isWritable) {
    return wrong(
      'files',
      path,
      `others may write it (mode ${shown})`,
      `see that nobody changed it, then: chmod go-w ${path}`,
    );
  }
  if (isSecret && kind === 'file' && (mode & 0o077) !== 0) {
    return wrong(
      'files',
      path,
      `others may read it (mode ${shown}), and it holds keys`,
      `chmod 600 ${path}, and cpn rotate-key`,
    );
  }
  return well('files', path, `mode ${shown}, of ${uid === 0 ? 'root' : 'this user'}`);
}

/** Who wrote a process id into the file beside a lock. */
export interface Holder {
  readonly pid: number;
  readonly alive: boolean;
}

/**
 * Judges whether somebody keeps the networks right.
 *
 * @param holder null where no daemon ever wrote itself down
 */
export function judgeDaemon(holder: Holder | null, networks: number): Finding {
  const looked = 'the daemon';
  if (holder?.alive) return well('daemon', looked, `cpn run is at work (pid ${holder.pid})`);
  const left =
    holder === null ? '' : `; that of pid ${holder.pid} ended without a word, and left its lock, which holds nobody up`;
  if (networks === 0) return well('daemon', looked, `is not needed: no network is joined${left}`);
  return worthKnowing(
    'daemon',
    looked,
    `does not run${left}; changes of a network and drift stay as they are until the next pass`,
    'systemctl enable --now cpn, or cpn run',
  );
}
