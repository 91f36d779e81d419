import { type PublicKey, parsePeerKey, parseSecretKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import { InvalidValue } from '../errors/index.ts';
import { type Prefix, parseRange } from '../net/cidr.ts';
import type { Endpoint } from '../net/endpoint.ts';
import { parseProvidedEndpoint } from './provided-endpoint.ts';
import { type ProvidedSection, readAll, readLast, wrong } from './provided-sections.ts';

/** A `[Peer]` of a service's text. The endpoint may be a name, which cpn resolves. */
export interface ProvidedPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly allowedIps: readonly Prefix[];
  readonly endpoint: Endpoint | null;
  readonly keepalive: number | null;
}

/** An unusable `[Peer]`: its key, if readable, and the reason. */
export interface SkippedSection {
  readonly publicKey: string | null;
  readonly reason: string;
}

export function tryPeer(section: ProvidedSection): ProvidedPeer | SkippedSection {
  try {
    return readPeer(section);
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    const key = section.values.get('PublicKey')?.at(-1)?.text ?? '';
    return { publicKey: /^[A-Za-z0-9+/]{43}=$/.test(key) ? key : null, reason: error.message };
  }
}

function readPeer(section: ProvidedSection): ProvidedPeer {
  const publicKey = readLast(section, 'PublicKey', (text) => parsePeerKey(text));
  if (publicKey === null) throw wrong(`line ${section.line}`, 'begins a [Peer] that has no PublicKey');
  return {
    publicKey,
    presharedKey: readLast(section, 'PresharedKey', (text) => parseSecretKey(text)),
    allowedIps: [...new Set(readAll(section, 'AllowedIPs', (text) => split(text).map(readPrefix)).flat())],
    endpoint: readLast(section, 'Endpoint', parseProvidedEndpoint),
    keepalive: readLast(section, 'PersistentKeepalive', readKeepalive) || null,
  };
}

/** An address becomes its host prefix, as in `wg`. */
function readPrefix(text: string): Prefix {
  const isAlone = !text.includes('/');
  return parseRange(isAlone ? `${text}/${text.includes(':') ? 128 : 32}` : text.replace(/\/0+(?=\d)/, '/'));
}

/** Seconds. `off` and 0 mean none. */
function readKeepalive(text: string): number {
  if (text.toLowerCase() === 'off') return 0;
  const seconds = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= 65535)) throw wrong('PersistentKeepalive', 'is not a number of seconds up to 65535');
  return seconds;
}

/** wg separates only by commas. */
function split(text: string): string[] {
  return text.split(',').filter((part) => part !== '');
}
