import { type Address, familyOf, hostPrefix, rangeOf } from './cidr.ts';

/** A TCP socket in /proc/net/tcp or tcp6 (proc_pid_net(5)). Ends are `ADDRESS:PORT` in hex. */
export interface TcpSocket {
  readonly local: string;
  readonly remote: string;
  readonly isListening: boolean;
  /** The uid of its owner. Meaningless until a connection is accepted. */
  readonly user: number;
  /** `0` for a connection that no program has accepted yet. */
  readonly inode: string;
}

export interface SocketEnd {
  readonly address: Address;
  readonly port: number;
}

/** A connection of this process, by its two ends. */
export interface ConnectionEnds {
  readonly own: SocketEnd;
  readonly service: SocketEnd;
}

/** The byte order of the host, in which the kernel prints the words of an address. */
export type ByteOrder = 'LE' | 'BE';

const row =
  /^ *\d+: ([0-9A-F]+:[0-9A-F]{4}) ([0-9A-F]+:[0-9A-F]{4}) ([0-9A-F]{2}) [0-9A-F:]+ [0-9A-F:]+ [0-9A-F]+ +(\d+) +\d+ (\d+)/gm;

/** TCP_LISTEN of include/net/tcp_states.h. */
const listening = '0A';

export function parseTcpSockets(tables: string): TcpSocket[] {
  return [...tables.matchAll(row)].map(([, local = '', remote = '', state, user, inode = '']) => {
    return { local, remote, isListening: state === listening, user: Number(user), inode };
  });
}

/**
 * The sockets that accept connections there. The kernel prefers an exact address to all addresses,
 * then IPv4 to both families. Sockets of equal rank share the connections (SO_REUSEPORT).
 */
export function findListeners(
  sockets: readonly TcpSocket[],
  { address, port }: SocketEnd,
  order: ByteOrder,
): TcpSocket[] {
  const all = familyOf(address) === 4 ? [allOfIpv4, allOfIpv6] : [allOfIpv6];
  const ranks = [formatAddress(address, order), ...all.map((each) => [each])];
  const found = ranks.map((addresses) => {
    const ends = addresses.map((each) => `${each}:${formatPort(port)}`);
    return sockets.filter(({ isListening, local }) => isListening && ends.includes(local));
  });
  return found.find((each) => each.length > 0) ?? [];
}

/** The service's socket; undefined in another network namespace or behind DNAT. */
function findServiceSocket(sockets: readonly TcpSocket[], { own, service }: ConnectionEnds, order: ByteOrder) {
  const format = ({ address, port }: SocketEnd) =>
    formatAddress(address, order).map((each) => `${each}:${formatPort(port)}`);
  const [locals, remotes] = [format(service), format(own)];
  return sockets.find(
    ({ isListening, local, remote }) => !isListening && locals.includes(local) && remotes.includes(remote),
  );
}

/** The program that accepts a connection on this host. */
export type LoopbackListener =
  /** The uid of the socket that accepts connections there, or that accepted this connection. */
  | { readonly kind: 'seen'; readonly user: number }
  /** The listening socket changed while the connection was made, so its owner is uncertain. */
  | { readonly kind: 'changed' }
  /** The other end is no socket of this network namespace. */
  | { readonly kind: 'unseen' };

/** The sockets of this host before and after a connection was made. */
export interface SocketTables {
  /** Listening sockets, read before the connection was made. */
  readonly before: readonly TcpSocket[];
  /** Listening sockets, read after the connection was made. */
  readonly after: readonly TcpSocket[];
  /** Reads all sockets, which takes longer. Called if no socket listens. */
  readAll(): readonly TcpSocket[];
}

/**
 * Determines which user accepts a connection. A listener that exists before and after the
 * connection was made has it in its queue, or has accepted it. Reading the sockets only afterwards
 * is not safe: a program could accept the connection and close its socket, and the real service
 * could listen again in time.
 *
 * @param isTrusted true if the user may accept it; of several users, an untrusted user counts
 */
export function findListener(
  ends: ConnectionEnds,
  tables: SocketTables,
  isTrusted: (user: number) => boolean,
  order: ByteOrder,
): LoopbackListener {
  const choose = (found: readonly TcpSocket[]): LoopbackListener | null => {
    const chosen = found.find(({ user }) => !isTrusted(user)) ?? found[0];
    return chosen === undefined ? null : { kind: 'seen', user: chosen.user };
  };
  const known = new Set(findListeners(tables.before, ends.service, order).map(({ inode }) => inode));
  const now = findListeners(tables.after, ends.service, order);
  const isForeign = now.some(({ user }) => !isTrusted(user));
  if (now.length > 0)
    return isForeign || now.every(({ inode }) => known.has(inode)) ? (choose(now) ?? changed) : changed;
  const all = tables.readAll();
  const accepted = findServiceSocket(all, ends, order);
  if (accepted === undefined) return { kind: 'unseen' };
  return accepted.inode === '0' ? changed : { kind: 'seen', user: accepted.user };
}

const changed: LoopbackListener = { kind: 'changed' };

const allOfIpv4 = '0'.repeat(8);
const allOfIpv6 = '0'.repeat(32);

/** As the kernel prints it. IPv4 also in its IPv6-mapped form (RFC 4291, 2.5.5.2). */
function formatAddress(address: Address, order: ByteOrder): string[] {
  const isIpv4 = familyOf(address) === 4;
  const hex = rangeOf(hostPrefix(address)).first.toString(16).toUpperCase();
  const words = hex.padStart(isIpv4 ? 8 : 32, '0').match(/.{8}/g) ?? [];
  const printed = words.map((word) => inOrder(word, order)).join('');
  return isIpv4 ? [printed, `${'0'.repeat(16)}${inOrder('0000FFFF', order)}${printed}`] : [printed];
}

function inOrder(word: string, order: ByteOrder): string {
  return order === 'BE' ? word : (word.match(/../g) ?? []).reverse().join('');
}

function formatPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}

/**
 * True for root, for service users (below UID_MIN of login.defs(5)), and for dynamic users of
 * systemd (DynamicUser= in systemd.exec(5)). False for user 65534, which many programs share.
 */
export function isSystemUser(user: number): boolean {
  return user < 1000 || (user >= 61_184 && user <= 65_519);
}
