import { endianness } from 'node:os';
import type { SshClient } from '../../core/host-state/actual.ts';
import { readSshConnection } from '../read-address.ts';
import { readHexAddress } from './socket-table.ts';
import type { SshConnections } from './ssh-servers.ts';
import { findOthersSockets, readSshConnections } from './ssh-sockets.ts';
import { readIfThere } from './underlay.ts';

/**
 * A line of /proc/net/tcp or tcp6 in state TCP_ESTABLISHED (include/net/tcp_states.h). Captures the
 * local address and port, the remote address, and, if present, the uid and inode of the socket.
 * Must skip other lines cheaply: a busy host has thousands.
 */
const established =
  /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} 01(?: [0-9A-F:]+ [0-9A-F:]+ [0-9A-F]+ +(\d+) +\d+ (\d+))?(?: |$)/gm;

/** A line in state TCP_LISTEN: captures the local port. */
const listening = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A(?: |$)/gm;

/**
 * Reads the SSH sessions to this host. Inspects processes only if a client may be connected: with
 * much memory, the tables take milliseconds, and the processes as long again.
 */
export async function readSshClients(sshConnection: string | undefined): Promise<SshClient[]> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map(readIfThere).join('\n');
  if (!isConnectedTo(tables)) return readSshConnection(sshConnection);
  return parseSshClients(tables, sshConnection, { connections: readSshConnections(), findOthersSockets });
}

const sshPort = 22;

/** True if a client is connected to the SSH port, or to any port on which this host listens. */
function isConnectedTo(tables: string): boolean {
  const ports = new Set([...tables.matchAll(listening)].map(([, port = '']) => Number.parseInt(port, 16)));
  ports.add(sshPort);
  return [...tables.matchAll(established)].some(([, , port = '']) => ports.has(Number.parseInt(port, 16)));
}

export interface SshOptions {
  readonly connections?: SshConnections;
  /** Returns sockets that only non-root processes have open, among those of no SSH server. */
  readonly findOthersSockets?: (inodes: ReadonlySet<string>) => ReadonlySet<string>;
  readonly order?: 'LE' | 'BE';
}

const none: SshConnections = { loggedIn: new Set(), known: new Set() };

/**
 * Finds the SSH sessions to this host in /proc/net/tcp and tcp6 (proc_pid_net(5)):
 * - connections of root's SSH servers whose clients are authenticated
 * - the session named by SSH_CONNECTION (ssh(1))
 * - connections to port 22, or to the port of our own session, whose processes are not visible or
 *   are other programs of root
 *
 * A socket that another user created does not count. Neither does a connection that no program has
 * accepted yet, which has no inode.
 */
export function parseSshClients(
  tables: string,
  sshConnection = '',
  { connections = none, findOthersSockets: findOthers = () => new Set(), order = endianness() }: SshOptions = {},
): SshClient[] {
  const [, , , port = String(sshPort)] = sshConnection.split(' ');
  const ports = new Set([sshPort, Number(port)]);
  const rows = [...tables.matchAll(established)]
    .map(([, local = '', at = '', remote = '', user = '0', inode = '']) => ({ local, at, remote, user, inode }))
    .filter(({ user, inode }) => user === '0' && inode !== '0');
  const isOpen = ({ at, inode }: (typeof rows)[number]) =>
    ports.has(Number.parseInt(at, 16)) && !connections.known.has(inode);
  const others = findOthers(new Set(rows.filter(isOpen).flatMap(({ inode }) => (inode === '' ? [] : [inode]))));
  const found = rows
    .filter((row) => connections.loggedIn.has(row.inode) || (isOpen(row) && !others.has(row.inode)))
    .flatMap(({ local, remote }): SshClient[] => {
      const address = readHexAddress(remote, order);
      return address === null ? [] : [{ address, local: readHexAddress(local, order) }];
    });
  const sessions = [...found, ...readSshConnection(sshConnection)];
  return [...new Map(sessions.map((each) => [`${each.address} ${each.local}`, each])).values()];
}
