import type { OpenFiles } from './process-files.ts';

/** A process whose executable has the name of an SSH server. */
export interface SshCandidate {
  readonly pid: string;
  readonly parent: string;
  /** True if both its real and its effective user are root. */
  readonly isRoot: boolean;
  /** The name of its executable. */
  readonly program: string;
}

/** A process of an SSH server. */
export interface SshProcess extends SshCandidate, OpenFiles {
  /** Its command line, in which OpenSSH reports its state (setproctitle(3)). */
  readonly title: string;
}

/** The connections of SSH servers, by the inodes of their sockets. */
export interface SshConnections {
  /** Connections of root's servers whose clients are authenticated. */
  readonly loggedIn: ReadonlySet<string>;
  /** All sockets of root's servers. */
  readonly known: ReadonlySet<string>;
}

/** OpenSSH has a separate program for a connection since 9.8, and for its login since 10.0. */
export const sshPrograms: ReadonlySet<string> = new Set([
  'sshd',
  'sshd-session',
  'sshd-auth',
  'dropbear',
  'dropbearmulti',
]);

/**
 * Drops the processes that cannot belong to a connection of root's servers: those that are neither
 * root's nor children of a process of root. Any user may name a program sshd, and open thousands of
 * files in it. `holds` is true for a process that may own such a connection.
 */
export function selectServers(
  candidates: readonly SshCandidate[],
): readonly (SshCandidate & { readonly holds: boolean })[] {
  const byPid = new Map(candidates.map((each) => [each.pid, each]));
  return candidates
    .filter(({ isRoot, parent }) => isRoot || byPid.get(parent)?.isRoot === true)
    .map((each) => ({ ...each, holds: isOfRoot(each, byPid) }));
}

/** Finds the connections whose clients are authenticated. */
export function judgeConnections(processes: readonly SshProcess[]): SshConnections {
  const byPid = new Map(processes.map((each) => [each.pid, each]));
  const children = Map.groupBy(processes, ({ parent }) => parent);
  const serving = processes.filter((each) => {
    if (!isOfRoot(each, byPid)) return false;
    return isDropbear(each)
      ? isDropbearLoggedIn(each, byPid.get(each.parent))
      : isOpenSshLoggedIn(each, children.get(each.pid) ?? []);
  });
  return {
    loggedIn: new Set(serving.flatMap(({ sockets }) => [...sockets])),
    known: new Set(processes.flatMap(({ sockets }) => [...sockets])),
  };
}

/**
 * True if the process can own an authenticated connection of root's server. OpenSSH's monitor stays
 * root's. Newer Dropbear changes to the user, under a server that is root's.
 */
function isOfRoot(process: SshCandidate, byPid: ReadonlyMap<string, SshCandidate>): boolean {
  return process.isRoot || (isDropbear(process) && byPid.get(process.parent)?.isRoot === true);
}

function isDropbear({ program }: SshCandidate): boolean {
  return program.startsWith('dropbear');
}

/**
 * Dropbear closes its pipe to the server after authentication (send_msg_userauth_success in
 * svr-auth.c). For pipes that it inherited, it has the same end open as the server.
 */
function isDropbearLoggedIn({ writePipes }: SshProcess, server: SshProcess | undefined): boolean {
  if (server === undefined || !isDropbear(server)) return true;
  return ![...writePipes].some((inode) => server.readPipes.has(inode) && !server.writePipes.has(inode));
}

/**
 * Before authentication, the monitor has one of these marks (privsep_preauth in sshd.c and
 * sshd-session.c):
 * - the title `sshd: [rexeced]` or `sshd: [accepted]`, without a user name
 * - an unprivileged child that communicates with the client: `[net]`, or sshd-auth since 10.0
 *
 * The child ends when authentication succeeds.
 */
function isOpenSshLoggedIn({ title }: SshProcess, children: readonly SshProcess[]): boolean {
  if (!/^sshd(-session)?: [^[]/.test(title) || title.includes('[listener]')) return false;
  return !children.some((child) => child.program === 'sshd-auth' || /\[(net|session-auth[^\]]*)\]/.test(child.title));
}
