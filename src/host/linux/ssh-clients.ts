import { endianness } from 'node:os';
import { type Address, addressAt } from '../../core/cidr.ts';
import { readAddress } from '../read-address.ts';

/** TCP_ESTABLISHED of include/net/tcp_states.h. */
const established = '01';

/** The beginning of an IPv4 address in a socket that speaks both families. */
const mapped = '00000000000000000000FFFF';

/**
 * Finds where SSH sessions come from: the other ends of established connections to port 22, or to the port of our own
 * session, in /proc/net/tcp and tcp6 (proc_pid_net(5)), and the session named by SSH_CONNECTION (ssh(1)).
 */
export function parseSshClients(tables: string, sshConnection = '', order = endianness()): Address[] {
  const [client = '', , , port = '22'] = sshConnection.split(' ');
  const ports = new Set([22, Number(port)]);
  const found = tables.split('\n').flatMap((line) => {
    const [, local = '', remote = '', state] = line.trim().split(/\s+/);
    const localPort = Number.parseInt(local.split(':')[1] ?? '', 16);
    if (state !== established || !ports.has(localPort)) return [];
    return readHex(remote.split(':')[0] ?? '', order) ?? [];
  });
  return [...new Set([...found, ...[readAddress(client) ?? []].flat()])];
}

/** Addresses are printed as 32-bit words in the order of the host's own bytes. */
function readHex(text: string, order: 'LE' | 'BE'): Address | null {
  if (!/^([0-9A-F]{8}|[0-9A-F]{32})$/.test(text)) return null;
  const words = text.match(/.{8}/g) ?? [];
  const hex = words.map((word) => (order === 'BE' ? word : (word.match(/../g) ?? []).reverse().join(''))).join('');
  const four = hex.length === 8 ? hex : hex.startsWith(mapped) ? hex.slice(24) : null;
  return four === null ? readAddress((hex.match(/.{4}/g) ?? []).join(':')) : addressAt(BigInt(`0x${four}`));
}
