import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { MissingPrivilege } from '../../core/errors/index.ts';
import { readIfThere } from './underlay.ts';

/** The ids of the processes that are visible to this process (proc(5)). */
export function listProcesses(): string[] {
  return list('/proc').filter((name) => /^\d+$/.test(name));
}

/** The inodes of the sockets and pipes that a process has open. */
export interface OpenFiles {
  readonly sockets: ReadonlySet<string>;
  /** Pipes whose read end the process has open, and pipes whose write end it has open. */
  readonly readPipes: ReadonlySet<string>;
  readonly writePipes: ReadonlySet<string>;
}

export const noFiles: OpenFiles = { sockets: new Set(), readPipes: new Set(), writePipes: new Set() };

/**
 * Reads the open files of a process (proc_pid_fd(5)). Empty for a process that ended, or that this
 * process may not inspect.
 *
 * @param most the maximum number of files to read, lowest file descriptors first
 */
export function readOpenFiles(pid: string, most = Number.POSITIVE_INFINITY): OpenFiles {
  const [sockets, readPipes, writePipes] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const all = list(`/proc/${pid}/fd`);
  for (const fd of all.length > most ? all.toSorted((a, b) => Number(a) - Number(b)).slice(0, most) : all) {
    const path = `/proc/${pid}/fd/${fd}`;
    const [, kind, inode] = /^(socket|pipe):\[(\d+)\]$/.exec(readLink(path)) ?? [];
    if (inode === undefined) continue;
    if (kind === 'socket') sockets.add(inode);
    else (canRead(path) ? readPipes : writePipes).add(inode);
  }
  return { sockets, readPipes, writePipes };
}

/** The permissions of the symbolic link show the access mode of the open file. */
function canRead(path: string): boolean {
  try {
    return (lstatSync(path).mode & 0o400) !== 0;
  } catch {
    return false;
  }
}

/** A process's real and effective user, and parent (proc_pid_status(5)). Null if it ended. */
export function readOwner(
  pid: string,
): { readonly user: number; readonly acts: number; readonly parent: string } | null {
  const text = readIfThere(`/proc/${pid}/status`);
  const [, user, acts] = /^Uid:\t(\d+)\t(\d+)/m.exec(text) ?? [];
  const [, parent] = /^PPid:\t(\d+)/m.exec(text) ?? [];
  if (user === undefined || acts === undefined || parent === undefined) return null;
  return { user: Number(user), acts: Number(acts), parent };
}

/** The name of the executable, which a process cannot fake. Empty if it cannot be read. */
export function readProgram(pid: string): string {
  return basename(readLink(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ''));
}

/** Empty if the process ended or may not be inspected. */
function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** CAP_NET_ADMIN of include/uapi/linux/capability.h. */
const netAdmin = 1n << 12n;

/** @throws MissingPrivilege without CAP_NET_ADMIN, which root in a container may lack too */
export async function checkPrivilege(): Promise<void> {
  const status = readStatus();
  if (status === null ? process.geteuid?.() === 0 : mayAdminister(status)) return;
  throw new MissingPrivilege('cpn', 'run it with sudo, or give the container or unit NET_ADMIN');
}

function readStatus(): string | null {
  try {
    return readFileSync('/proc/self/status', 'utf8');
  } catch {
    return null;
  }
}

/** Parses the effective capabilities in /proc/self/status (proc_pid_status(5)). */
export function mayAdminister(status: string): boolean {
  const [, effective] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? [];
  return effective !== undefined && (BigInt(`0x${effective}`) & netAdmin) !== 0n;
}
