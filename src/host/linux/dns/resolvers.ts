import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import type { ResolverStub, Underlay } from '../../../core/host-state/actual.ts';
import { findMark } from '../../../core/names/drop-in.ts';
import { type Address, covers, parsePrefix } from '../../../core/net/cidr.ts';
import { isSystemUser } from '../../../core/net/loopback-listener.ts';
import { listProcesses, type OpenFiles, readOpenFiles, readProgram } from '../process-files.ts';
import { parseSockets, type SocketRow } from '../socket-table.ts';
import { readIfThere } from '../underlay.ts';
import { type Forwarder, mostOfStub, parseResolvers, type SettingsFiles } from './settings.ts';
import { readStubSettings, readUsualSettings } from './stub-settings.ts';

/** The servers that the stub of systemd-resolved queries, as systemd-resolved publishes them. */
const resolvedFile = '/run/systemd/resolve/resolv.conf';

/** The addresses of that stub (systemd-resolved.service(8)). */
const resolvedStubs: readonly string[] = ['127.0.0.53', '127.0.0.54'];

/** Plain DNS, and DNS over TLS. */
const dnsPorts: ReadonlySet<number> = new Set([53, 853]);

/** The maximum number of stubs to follow: a stub may forward to another stub on this host. */
const mostStubs = 8;

/** Servers per stub: one with servers for single domains has more than resolv.conf(5)'s three. */
const mostServers = 16;

/** The process that owns a socket, by inode. Cached because searching all processes is slow. */
export type OwnerCache = Map<string, string>;

/** The files and the processes of a host, as far as its resolvers are concerned. */
export interface ResolverFiles {
  /** The text of a file. Empty if it does not exist or cannot be read. */
  readonly read: (path: string) => string;
  readonly listProcesses: () => readonly string[];
  readonly readOpenFiles: (pid: string) => Pick<OpenFiles, 'sockets'>;
  readonly readProgram: (pid: string) => string;
  /** The files that settings of root name. */
  readonly settings: SettingsFiles;
}

/** For a socket whose process is not visible. */
const hidden = '';

const mostOwners = 64;

/**
 * Reads the resolvers of this host. If resolv.conf(5) names a local stub, adds the servers from the
 * stub's settings, and those to which its process has a socket.
 *
 * @param own the addresses of this host outside its tunnels: a socket with a tunnel address does
 *   not count
 */
export function readResolvers(
  own: readonly Address[],
  owners: OwnerCache,
  files = ofThisHost,
): Pick<Underlay, 'resolvers' | 'stubs'> {
  const published = files.read(resolvedFile);
  const ofGlibc = parseResolvers(files.read('/etc/resolv.conf'));
  const named = [...new Set([...ofGlibc, ...parseResolvers(published, mostOfStub)])];
  const first = named.filter((address) => isHere(address, own) && !isOfResolved(address, files));
  if (first.length === 0) return { resolvers: named };
  const stubs = findStubs(first, own, owners, files);
  const stated = stubs.flatMap((stub) => stub.stated);
  return { resolvers: [...new Set([...named, ...stated])], stubs };
}

/** Its process is hidden from the sandbox of the daemon. */
function isOfResolved(address: Address, { read }: Pick<ResolverFiles, 'read'>): boolean {
  return resolvedStubs.includes(address) && read(resolvedFile) !== '';
}

const loopback = parsePrefix('127.0.0.0/8');

function isHere(address: Address, own: readonly Address[]): boolean {
  return covers(loopback, address) || address === '::1' || own.includes(address);
}

/**
 * Whether the first server of resolv.conf(5) is on this host, and neither systemd-resolved nor the
 * program of a user; null if not. One that reads its settings again is silent for a moment.
 */
export function findLocalResolver(
  own: readonly Address[],
  files: Pick<ResolverFiles, 'read'> = ofThisHost,
): 'listening' | 'silent' | null {
  const [address] = parseResolvers(files.read('/etc/resolv.conf'));
  if (address === undefined || !isHere(address, own) || isOfResolved(address, files)) return null;
  const { inodes, stranger } = findListening(readSockets(files), address, 53);
  if (stranger !== null) return null;
  return inodes.length > 0 ? 'listening' : 'silent';
}

/** The sockets that receive the queries of this host, by inode. Empty if none is on this host. */
export function findResolverSockets(): readonly string[] {
  const [address] = parseResolvers(ofThisHost.read('/etc/resolv.conf'));
  return address === undefined ? [] : findListening(readSockets(ofThisHost), address, 53).inodes;
}

function readSockets({ read }: Pick<ResolverFiles, 'read'>): Sockets {
  const parse = (names: readonly string[]) =>
    parseSockets(names.map((name) => read(`/proc/net/${name}`)).join('\n'), dnsPorts);
  return { datagrams: parse(['udp', 'udp6']), streams: parse(['tcp', 'tcp6']) };
}

function findStubs(
  first: readonly Address[],
  own: readonly Address[],
  owners: OwnerCache,
  files: ResolverFiles,
): ResolverStub[] {
  const tables = (names: readonly string[]) => names.map((name) => files.read(`/proc/net/${name}`)).join('\n');
  const [datagrams, streams] = [tables(['udp', 'udp6']), tables(['tcp', 'tcp6'])];
  const stubs: ResolverStub[] = [];
  const done = new Set<string>();
  const pending: Forwarder[] = first.map((address) => ({ address, port: 53 }));
  for (let next = pending.shift(); next !== undefined && done.size < mostStubs; next = pending.shift()) {
    const key = `${next.address} ${next.port}`;
    if (done.has(key)) continue;
    done.add(key);
    const ports = new Set([...dnsPorts, next.port]);
    const sockets = { datagrams: parseSockets(datagrams, ports), streams: parseSockets(streams, ports) };
    const { forwarders, ...stub } = describeStub(next, sockets, own, owners, files);
    stubs.push(stub);
    pending.push(...forwarders.filter(({ address }) => isHere(address, own)));
  }
  return stubs;
}

interface Sockets {
  readonly datagrams: readonly SocketRow[];
  readonly streams: readonly SocketRow[];
}

function describeStub(
  { address, port }: Forwarder,
  { datagrams, streams }: Sockets,
  own: readonly Address[],
  owners: OwnerCache,
  files: ResolverFiles,
): ResolverStub & { readonly forwarders: readonly Forwarder[] } {
  const { inodes, stranger } = findListening({ datagrams, streams }, address, port);
  if (stranger !== null) {
    const unknown = { program: null, isStated: false, stated: [], observed: [], forwarders: [] };
    return { address, isListening: true, stranger, ...unknown };
  }
  const pid = findOwner(inodes, owners, files);
  const program = pid === null ? '' : files.readProgram(pid);
  const argv = pid === null ? [] : files.read(`/proc/${pid}/cmdline`).split('\0');
  const settings = program === '' ? readUsualSettings(files.settings) : readStubSettings(program, argv, files.settings);
  const { sockets } = pid === null ? { sockets: new Set<string>() } : files.readOpenFiles(pid);
  const named = new Map((settings?.forwarders ?? []).map((each) => [`${each.address} ${each.port}`, each]));
  const forwarders = [...named.values()].slice(0, mostServers);
  const stated = forwarders.map((each) => each.address).filter((each) => !isHere(each, own));
  return {
    address,
    isListening: inodes.length > 0,
    program: program === '' ? null : program,
    isStated: settings?.isComplete === true && named.size <= mostServers,
    stated: [...new Set(stated)],
    ...findServers([...datagrams, ...streams], sockets, own),
    forwarders,
  };
}

/**
 * The servers to which a program has sockets: `observed` from an address of this host outside its
 * tunnels, `tunnelled` from a tunnel address.
 *
 * @param inodes the sockets of the program
 */
export function findServers(
  rows: readonly SocketRow[],
  inodes: ReadonlySet<string>,
  own: readonly Address[],
): Required<Pick<ResolverStub, 'observed' | 'tunnelled'>> {
  const reach = (isWanted: (local: Address) => boolean) => {
    const found = rows.flatMap(({ inode, local, remote, remotePort }) =>
      inodes.has(inode) && dnsPorts.has(remotePort) && remote !== null && local !== null && isWanted(local)
        ? [remote]
        : [],
    );
    const servers = [...new Set(found)].filter((each) => !isHere(each, own));
    return servers.toSorted().slice(0, mostServers);
  };
  return { observed: reach((local) => own.includes(local)), tunnelled: reach((local) => !isHere(local, own)) };
}

/** The sockets that receive queries at an address. */
export interface ListeningSockets {
  readonly inodes: readonly string[];
  /** The user of a socket that does not count. Null if another socket counts, or none exists. */
  readonly stranger: number | null;
}

/**
 * Finds the sockets that receive queries at an address: sockets bound to that address, else sockets
 * bound to all addresses. Clients query over UDP first, so a TCP socket counts only without a UDP
 * socket.
 *
 * A socket counts only if a system user created it. Otherwise any user could bind an unprivileged
 * port, such as 5335, or 53 with ip_unprivileged_port_start=0. That user could then choose
 * addresses that stay outside the tunnel.
 */
export function findListening({ datagrams, streams }: Sockets, address: Address, port: number): ListeningSockets {
  const isOpen = (row: SocketRow) =>
    row.localPort === port && row.remote === null && row.inode !== '0' && (row.local === address || row.local === null);
  const open = [datagrams.filter(isOpen), streams.filter(isOpen)].find((rows) => rows.length > 0) ?? [];
  const exact = open.filter(({ local }) => local !== null);
  const rows = exact.length > 0 ? exact : open;
  const counted = rows.filter(({ user }) => isSystemUser(user));
  return { inodes: counted.map(({ inode }) => inode), stranger: counted.length > 0 ? null : (rows[0]?.user ?? null) };
}

/** True if a socket of root receives queries at this address itself. */
export function isListening(address: Address, port: number, read = readIfThere): boolean {
  const tables = ['udp', 'udp6'].map((name) => read(`/proc/net/${name}`)).join('\n');
  return parseSockets(tables, new Set([port])).some(
    ({ local, localPort, remote, user }) => local === address && localPort === port && remote === null && user === 0,
  );
}

/** The process that owns one of these sockets. Null if none is visible. */
function findOwner(inodes: readonly string[], owners: OwnerCache, files: ResolverFiles): string | null {
  for (const inode of inodes) {
    const known = owners.get(inode);
    if (known === hidden) return null;
    if (known !== undefined && files.readOpenFiles(known).sockets.has(inode)) return known;
  }
  if (inodes.length === 0) return null;
  const found = files.listProcesses().find((pid) => {
    const { sockets } = files.readOpenFiles(pid);
    return inodes.some((inode) => sockets.has(inode));
  });
  if (owners.size > mostOwners) owners.clear();
  for (const inode of inodes) owners.set(inode, found ?? hidden);
  return found ?? null;
}

/** Reads only files of root: another user's process may name any file, or an endless pipe. */
export const rootsFiles: SettingsFiles = {
  // Our servers are not those of the underlay.
  read: (path) => {
    const text = readOfRoot(path);
    return findMark(text) === null ? text : '';
  },
  list: (folder) => {
    try {
      return readdirSync(folder).toSorted();
    } catch {
      return [];
    }
  },
};

const mostBytes = 1 << 20;

/**
 * True for a file that another user can change and {@link readOfRoot} does not return. A file that
 * is too large counts as read: it is often a blocklist, which names no other files.
 */
export function isOfOthers(path: string): boolean {
  try {
    const stats = statSync(path);
    return stats.isFile() && stats.uid !== 0;
  } catch {
    return false;
  }
}

export function readOfRoot(path: string): string {
  let file: number | undefined;
  try {
    // A relative path starts in the working directory of the other program.
    if (!path.startsWith('/')) return '';
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stats = fstatSync(file);
    return stats.isFile() && stats.uid === 0 && stats.size <= mostBytes ? readFileSync(file, 'utf8') : '';
  } catch {
    return '';
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

const ofThisHost: ResolverFiles = {
  ...{ read: readIfThere, listProcesses, readOpenFiles, readProgram },
  settings: rootsFiles,
};
