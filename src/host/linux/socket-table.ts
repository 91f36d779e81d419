import { endianness } from 'node:os';
import type { TcpConnection } from '../../core/host-state/actual.ts';
import { type Address, addressAt } from '../../core/net/cidr.ts';
import { readAddress } from '../read-address.ts';

/** A socket in /proc/net/udp, tcp and their counterparts for IPv6 (proc_pid_net(5)). */
export interface SocketRow {
  /** Null if the socket is bound to all addresses of the host. */
  readonly local: Address | null;
  readonly localPort: number;
  /** Null if the socket has no remote end. */
  readonly remote: Address | null;
  readonly remotePort: number;
  /** The uid that created the socket. */
  readonly user: number;
  readonly inode: string;
}

const row =
  /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]{2} [0-9A-F:]+ [0-9A-F:]+ [0-9A-F]+ +(\d+) +\d+ (\d+) /gm;

/** Parses these tables. Returns only sockets whose local or remote port is in `ports`. */
export function parseSockets(tables: string, ports: ReadonlySet<number>, order = endianness()): SocketRow[] {
  return [...tables.matchAll(row)].flatMap(([, local = '', at = '', remote = '', to = '', user, inode = '']) => {
    const [localPort, remotePort] = [Number.parseInt(at, 16), Number.parseInt(to, 16)];
    if (!ports.has(localPort) && !ports.has(remotePort)) return [];
    const ends = { local: readEnd(local, order), localPort, remote: readEnd(remote, order), remotePort };
    return [{ ...ends, user: Number(user), inode }];
  });
}

/** A line of /proc/net/tcp or tcp6 in state TCP_ESTABLISHED (include/net/tcp_states.h). */
const established = /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) 01 /gm;

/** A line in state TCP_LISTEN: captures the local port. */
const listening = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm;

/** Parses these tables (proc_pid_net(5)). A port on which this host listens is the server's. */
export function parseConnections(tables: string, order = endianness()): TcpConnection[] {
  const accepted = new Set([...tables.matchAll(listening)].map(([, port = '']) => port));
  return [...tables.matchAll(established)].flatMap(([, local = '', at = '', remote = '', to = '']) => {
    const [own, other] = [readHexAddress(local, order), readHexAddress(remote, order)];
    if (own === null || other === null) return [];
    return accepted.has(at)
      ? [{ from: other, to: own, port: Number.parseInt(at, 16) }]
      : [{ from: own, to: other, port: Number.parseInt(to, 16) }];
  });
}

function readEnd(text: string, order: 'LE' | 'BE'): Address | null {
  return /^0+$/.test(text) ? null : readHexAddress(text, order);
}

/** The prefix of an IPv4-mapped IPv6 address. */
const mapped = '00000000000000000000FFFF';

/** The kernel prints addresses as 32-bit words in host byte order. */
export function readHexAddress(text: string, order: 'LE' | 'BE'): Address | null {
  if (!/^([0-9A-F]{8}|[0-9A-F]{32})$/.test(text)) return null;
  const words = text.match(/.{8}/g) ?? [];
  const hex = words.map((word) => (order === 'BE' ? word : (word.match(/../g) ?? []).reverse().join(''))).join('');
  const four = hex.length === 8 ? hex : hex.startsWith(mapped) ? hex.slice(24) : null;
  return four === null ? readAddress((hex.match(/.{4}/g) ?? []).join(':')) : addressAt(BigInt(`0x${four}`));
}
