import { endianness } from 'node:os';
import type { SshClient } from '../../core/host-state/actual.ts';
import { type Address, addressAt } from '../../core/net/cidr.ts';
import { readAddress, readSshConnection } from '../read-address.ts';
import { readIfThere } from './underlay.ts';

/**
 * A line of /proc/net/tcp or tcp6 in state TCP_ESTABLISHED (include/net/tcp_states.h): local address and port, remote address. Other
 * lines must be cheap to skip: a busy host has thousands.
 */
const established = /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):[0-9A-F]{4} 01(?: |$)/gm;

/** The prefix of an IPv4 address in an IPv6 socket. */
const mapped = '00000000000000000000FFFF';

/** Reads the SSH sessions to this host. A machine with much memory has large tables: it takes the kernel milliseconds to print them. */
export async function readSshClients(sshConnection: string | undefined): Promise<SshClient[]> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map(readIfThere);
  return parseSshClients(tables.join('\n'), sshConnection);
}

/**
 * Finds the SSH sessions to this host: the established connections to port 22, or to the port of our own session, in /proc/net/tcp and
 * tcp6 (proc_pid_net(5)), and the session named by SSH_CONNECTION (ssh(1)).
 */
export function parseSshClients(tables: string, sshConnection = '', order = endianness()): SshClient[] {
  const [, , , port = '22'] = sshConnection.split(' ');
  const ports = new Set([22, Number(port)]);
  const found = [...tables.matchAll(established)]
    .filter(([, , localPort = '']) => ports.has(Number.parseInt(localPort, 16)))
    .flatMap(([, local = '', , remote = '']): SshClient[] => {
      const address = readHex(remote, order);
      return address === null ? [] : [{ address, local: readHex(local, order) }];
    });
  const sessions = [...found, ...readSshConnection(sshConnection)];
  return [...new Map(sessions.map((each) => [`${each.address} ${each.local}`, each])).values()];
}

/** Addresses are printed as 32-bit words in host byte order. */
function readHex(text: string, order: 'LE' | 'BE'): Address | null {
  if (!/^([0-9A-F]{8}|[0-9A-F]{32})$/.test(text)) return null;
  const words = text.match(/.{8}/g) ?? [];
  const hex = words.map((word) => (order === 'BE' ? word : (word.match(/../g) ?? []).reverse().join(''))).join('');
  const four = hex.length === 8 ? hex : hex.startsWith(mapped) ? hex.slice(24) : null;
  return four === null ? readAddress((hex.match(/.{4}/g) ?? []).join(':')) : addressAt(BigInt(`0x${four}`));
}
