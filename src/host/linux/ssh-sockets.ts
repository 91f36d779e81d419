import { listProcesses, readOpenFiles, readOwner, readProgram } from './process-files.ts';
import { judgeConnections, type SshConnections, type SshProcess, sshPrograms } from './ssh-servers.ts';
import { readIfThere } from './underlay.ts';

/** Looks into the processes of SSH servers. Those of other network namespaces have sockets that are in no table of ours. */
export function readSshConnections(): SshConnections {
  return judgeConnections(listProcesses().flatMap(readSshProcess));
}

/** The name of a process is quick to read; it proves nothing, as any process may choose it. */
function readSshProcess(pid: string): SshProcess[] {
  if (!sshPrograms.has(readIfThere(`/proc/${pid}/comm`).trim())) return [];
  const title = readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
  const program = readProgram(pid);
  const owner = readOwner(pid);
  if (owner === null || !sshPrograms.has(program)) return [];
  const isRoot = owner.user === 0 && owner.acts === 0;
  return [{ pid, parent: owner.parent, isRoot, program, title, ...readOpenFiles(pid) }];
}

/** Of these sockets, those that only processes of other users than root have. Without all that no visible process has. */
export function findOthersSockets(inodes: ReadonlySet<string>): ReadonlySet<string> {
  if (inodes.size === 0) return inodes;
  const roots = new Set<string>();
  const others = new Set<string>();
  for (const pid of listProcesses()) {
    const held = [...inodes].filter((inode) => !roots.has(inode));
    if (held.length === 0) break;
    const { sockets } = readOpenFiles(pid);
    const found = held.filter((inode) => sockets.has(inode));
    if (found.length === 0) continue;
    const isRoot = readOwner(pid)?.user === 0;
    for (const inode of found) (isRoot ? roots : others).add(inode);
  }
  return new Set([...others].filter((inode) => !roots.has(inode)));
}
