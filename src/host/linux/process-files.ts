import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { readIfThere } from './underlay.ts';

/** The processes that this one can see, by their ids (proc(5)). */
export function listProcesses(): string[] {
  return list('/proc').filter((name) => /^\d+$/.test(name));
}

/** The inodes of the sockets and pipes that a process has open. */
export interface OpenFiles {
  readonly sockets: ReadonlySet<string>;
  /** Pipes of which it has the end to read from, and those of which it has the end to write to. */
  readonly readPipes: ReadonlySet<string>;
  readonly writePipes: ReadonlySet<string>;
}

export const noFiles: OpenFiles = { sockets: new Set(), readPipes: new Set(), writePipes: new Set() };

/**
 * Reads proc_pid_fd(5); nothing of a process that ended meanwhile, or that this one may not look into.
 *
 * @param most how many files are read, those with the lowest numbers first
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

/** The rights of the link are those with which the file is open. */
function canRead(path: string): boolean {
  try {
    return (lstatSync(path).mode & 0o400) !== 0;
  } catch {
    return false;
  }
}

/** The real and the effective user of a process, and its parent (proc_pid_status(5)); null where it is gone. */
export function readOwner(
  pid: string,
): { readonly user: number; readonly acts: number; readonly parent: string } | null {
  const text = readIfThere(`/proc/${pid}/status`);
  const [, user, acts] = /^Uid:\t(\d+)\t(\d+)/m.exec(text) ?? [];
  const [, parent] = /^PPid:\t(\d+)/m.exec(text) ?? [];
  if (user === undefined || acts === undefined || parent === undefined) return null;
  return { user: Number(user), acts: Number(acts), parent };
}

/** The name of the file that a process runs, which the process cannot choose; empty where it may not be read. */
export function readProgram(pid: string): string {
  return basename(readLink(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ''));
}

/** Empty for the folder of a process that ended meanwhile, or of one that may not be looked into. */
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
