import { createHash } from 'node:crypto';
import { InvalidValue } from '../core/errors.ts';

/** Of each WireGuard link, a digest of its configuration. */
export type Digests = ReadonlyMap<string, string>;

/**
 * Reads `wg show all dump` (wg(8)) into a digest of each link's configuration: keys, listen port, fwmark, and of each peer its
 * key, preshared key, allowed IPs and keepalive, whatever their order. Of the keys nothing else is kept. Endpoints,
 * handshakes and counters are left out: they change by themselves.
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
    // Says nothing of the line itself: a private key may be in it.
    else
      throw new InvalidValue('wg show all dump', undefined, 'has another number of fields in a line than wg(8) says');
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
