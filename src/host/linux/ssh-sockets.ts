import { readdirSync, readlinkSync } from 'node:fs';
import { readIfThere } from './underlay.ts';

/** OpenSSH, whose sessions have processes of other names since 9.8, and Dropbear. */
const servers = new Set(['sshd', 'sshd-session', 'sshd-auth', 'dropbear']);

/** The inodes of all sockets of SSH servers (proc_pid_fd(5)). Those of other network namespaces are in no table of ours. */
export function readSshSockets(): ReadonlySet<string> {
  const pids = list('/proc').filter((name) => /^\d+$/.test(name));
  const ssh = pids.filter((pid) => servers.has(readIfThere(`/proc/${pid}/comm`).trim()));
  return new Set(ssh.flatMap((pid) => list(`/proc/${pid}/fd`).flatMap((fd) => inodeOf(`/proc/${pid}/fd/${fd}`))));
}

/** Empty for the folder of a process that ended meanwhile. */
function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function inodeOf(path: string): string[] {
  try {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(path)) ?? [];
    return inode === undefined ? [] : [inode];
  } catch {
    return [];
  }
}
