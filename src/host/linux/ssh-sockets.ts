import { listProcesses, noFiles, readOpenFiles, readOwner, readProgram } from './process-files.ts';
import { judgeConnections, type SshCandidate, type SshConnections, selectServers, sshPrograms } from './ssh-servers.ts';
import { readIfThere } from './underlay.ts';

/** Inspects SSH servers. Those in another network namespace have no socket in our tables. */
export function readSshConnections(): SshConnections {
  const servers = selectServers(listProcesses().flatMap(readCandidate));
  return judgeConnections(
    servers.map(({ holds, ...each }) => {
      const title = readIfThere(`/proc/${each.pid}/cmdline`).replaceAll('\0', ' ').trim();
      return { ...each, title, ...(holds ? readOpenFiles(each.pid, each.isRoot ? undefined : mostOfUser) : noFiles) };
    }),
  );
}

/**
 * The maximum number of open files to read of a Dropbear that changed to the user. Its connection
 * is among the first, and the user controls how many follow.
 */
const mostOfUser = 1024;

/** Filters by name first, which is cheap but can be faked; the executable decides. */
function readCandidate(pid: string): SshCandidate[] {
  if (!sshPrograms.has(readIfThere(`/proc/${pid}/comm`).trim())) return [];
  const program = readProgram(pid);
  if (!sshPrograms.has(program)) return [];
  const owner = readOwner(pid);
  if (owner === null) return [];
  return [{ pid, parent: owner.parent, isRoot: owner.user === 0 && owner.acts === 0, program }];
}

/** Returns sockets open in other users' visible processes, and in none of root's. */
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
