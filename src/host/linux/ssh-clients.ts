import { endianness } from 'node:os';
import type { SshClient } from '../../core/host-state/actual.ts';
import { readSshConnection } from '../read-address.ts';
import { readHexAddress } from './socket-table.ts';
import type { SshConnections } from './ssh-servers.ts';
import { findOthersSockets, readSshConnections } from './ssh-sockets.ts';
import { readIfThere } from './underlay.ts';

/**
 * A line of /proc/net/tcp or tcp6 in state TCP_ESTABLISHED (include/net/tcp_states.h): local address and port, remote address, and the
 * user and the inode of the socket where they are there. Other lines must be cheap to skip: a busy host has thousands.
 */
const established =
  /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} 01(?: [0-9A-F:]+ [0-9A-F:]+ [0-9A-F]+ +(\d+) +\d+ (\d+))?(?: |$)/gm;

/** A line in state TCP_LISTEN: the local port. */
const listening = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A(?: |$)/gm;

/**
 * Reads the SSH sessions to this host. A machine with much memory has large tables: it takes the kernel milliseconds to print them, and
 * to look at all processes takes as long again.
 */
export async function readSshClients(sshConnection: string | undefined): Promise<SshClient[]> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map(readIfThere).join('\n');
  if (!isConnectedTo(tables)) return readSshConnection(sshConnection);
  return parseSshClients(tables, sshConnection, { connections: readSshConnections(), findOthersSockets });
}

const sshPort = 22;

/** True where a client is connected to a port on which this host listens, or to that of SSH: there may be an SSH server. */
function isConnectedTo(tables: string): boolean {
  const ports = new Set([...tables.matchAll(listening)].map(([, port = '']) => Number.parseInt(port, 16)));
  ports.add(sshPort);
  return [...tables.matchAll(established)].some(([, , port = '']) => ports.has(Number.parseInt(port, 16)));
}

export interface SshOptions {
  readonly connections?: SshConnections;
  /** Of sockets that belong to no SSH server, those that only processes of other users than root have. */
  readonly findOthersSockets?: (inodes: ReadonlySet<string>) => ReadonlySet<string>;
  readonly order?: 'LE' | 'BE';
}

const none: SshConnections = { loggedIn: new Set(), known: new Set() };

/**
 * Finds the SSH sessions to this host in /proc/net/tcp and tcp6 (proc_pid_net(5)): the connections of root's SSH servers whose clients
 * logged in, and the session named by SSH_CONNECTION (ssh(1)). Connections to port 22, or to the port of our own session, count too where
 * their processes cannot be seen, or are other programs of root. A socket that a process of another user made is none, and neither
 * is a connection that no program accepted yet, which has no inode.
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
