import { listProcesses, noFiles, readOpenFiles, readOwner, readProgram } from './process-files.ts';
import { judgeConnections, type SshCandidate, type SshConnections, selectServers, sshPrograms } from './ssh-servers.ts';
import { readIfThere } from './underlay.ts';

/** Looks into the processes of SSH servers. Those of other network namespaces have sockets that are in no table of ours. */
export function readSshConnections(): SshConnections {
  const servers = selectServers(listProcesses().flatMap(readCandidate));
  return judgeConnections(
    servers.map(({ holds, ...each }) => {
      const title = readIfThere(`/proc/${each.pid}/cmdline`).replaceAll('\0', ' ').trim();
      return { ...each, title, ...(holds ? readOpenFiles(each.pid, each.isRoot ? undefined : mostOfUser) : noFiles) };
    }),
  );
}

/** Open files of a Dropbear that became the user: it has the connection among the first, and users choose how many follow. */
const mostOfUser = 1024;

/** The name of a process is quick to read; it proves nothing, as any process may choose it. */
function readCandidate(pid: string): SshCandidate[] {
  if (!sshPrograms.has(readIfThere(`/proc/${pid}/comm`).trim())) return [];
  const program = readProgram(pid);
  if (!sshPrograms.has(program)) return [];
  const owner = readOwner(pid);
  if (owner === null) return [];
  return [{ pid, parent: owner.parent, isRoot: owner.user === 0 && owner.acts === 0, program }];
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
