import type { OpenFiles } from './process-files.ts';

/** A process that runs an SSH server, as its executable is called. */
export interface SshCandidate {
  readonly pid: string;
  readonly parent: string;
  /** True where its real and its effective user are root. */
  readonly isRoot: boolean;
  /** The name of its executable. */
  readonly program: string;
}

/** A process of an SSH server. */
export interface SshProcess extends SshCandidate, OpenFiles {
  /** Its command line, which OpenSSH uses to report its state (setproctitle(3)). */
  readonly title: string;
}

/** The connections of SSH servers, by the inodes of their sockets. */
export interface SshConnections {
  /** Those of root's servers whose clients logged in. */
  readonly loggedIn: ReadonlySet<string>;
  /** All sockets of root's servers. */
  readonly known: ReadonlySet<string>;
}

/** OpenSSH, which has programs of their own for a connection since 9.8 and for its login since 10.0, and Dropbear. */
export const sshPrograms: ReadonlySet<string> = new Set([
  'sshd',
  'sshd-session',
  'sshd-auth',
  'dropbear',
  'dropbearmulti',
]);

/**
 * Drops the processes without a part in a connection of root's servers: those that are neither root's nor a child of one. Any user may call
 * a program sshd, and open thousands of files in it.
 */
export function selectServers(
  candidates: readonly SshCandidate[],
): readonly (SshCandidate & { readonly holds: boolean })[] {
  const byPid = new Map(candidates.map((each) => [each.pid, each]));
  return candidates
    .filter(({ isRoot, parent }) => isRoot || byPid.get(parent)?.isRoot === true)
    .map((each) => ({ ...each, holds: isOfRoot(each, byPid) }));
}

/** Finds the connections whose clients logged in. */
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
 * The process that has the connection of a login is root's: OpenSSH's monitor, also while a child serves the user. Newer versions of
 * Dropbear become the user, below a server that is root's.
 */
function isOfRoot(process: SshCandidate, byPid: ReadonlyMap<string, SshCandidate>): boolean {
  return process.isRoot || (isDropbear(process) && byPid.get(process.parent)?.isRoot === true);
}

function isDropbear({ program }: SshCandidate): boolean {
  return program.startsWith('dropbear');
}

/**
 * Dropbear closes its pipe to the server as soon as the client has logged in (send_msg_userauth_success in svr-auth.c). Of pipes that it
 * inherited it has the same end as the server.
 */
function isDropbearLoggedIn({ writePipes }: SshProcess, server: SshProcess | undefined): boolean {
  if (server === undefined || !isDropbear(server)) return true;
  return ![...writePipes].some((inode) => server.readPipes.has(inode) && !server.writePipes.has(inode));
}

/**
 * Before a login the monitor has the title `sshd: [rexeced]` or `sshd: [accepted]`, without a name, or a child without rights that speaks to the client: `[net]`, since 10.0 a
 * sshd-auth (privsep_preauth in sshd.c and sshd-session.c). The child ends with the login.
 */
function isOpenSshLoggedIn({ title }: SshProcess, children: readonly SshProcess[]): boolean {
  if (!/^sshd(-session)?: [^[]/.test(title) || title.includes('[listener]')) return false;
  return !children.some((child) => child.program === 'sshd-auth' || /\[(net|session-auth[^\]]*)\]/.test(child.title));
}
