import { createHash } from 'node:crypto';
import { InvalidValue } from '../../core/errors/index.ts';

/** A digest of the configuration of each WireGuard interface. */
export type Digests = ReadonlyMap<string, string>;

/**
 * Parses `wg show all dump` (wg(8)) into a digest of the configuration of each interface: keys, listen port, fwmark, and of each peer its
 * key, preshared key, allowed IPs and keepalive, in any order. It leaves out endpoints, handshakes and counters, which change by
 * themselves.
 */
export function digestDevices(text: string): Digests {
  const links = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const fields = line.split('\t');
    const [link = ''] = fields;
    const known = links.get(link);
    if (fields.length === linkFields && known === undefined) links.set(link, [line]);
    else if (fields.length === peerFields && known !== undefined) known.push(describePeer(fields));
    // Without the line, which may have a private key.
    else
      throw new InvalidValue('wg show all dump', undefined, 'has a line with another number of fields than in wg(8)');
  }
  return new Map([...links].map(([link, lines]) => [link, digest(lines)]));
}

/** Link, private key, public key, listen port, fwmark. */
const linkFields = 5;
/** Link, public key, preshared key, endpoint, allowed IPs, latest handshake, bytes in, bytes out, keepalive. */
const peerFields = 9;

function describePeer([, publicKey, presharedKey, , allowedIps = '', , , , keepalive]: readonly string[]): string {
  return [publicKey, presharedKey, allowedIps.split(',').sort().join(','), keepalive].join('\t');
}

function digest(lines: readonly string[]): string {
  return createHash('sha256')
    .update([...lines].sort().join('\n'))
    .digest('base64');
}
