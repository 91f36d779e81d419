import { type PublicKey, parsePublicKey, parseSecretKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import { InvalidValue } from '../errors/index.ts';
import { familyOf, type InterfaceAddress, type Prefix, parseAddress, restorePrefix } from '../net/cidr.ts';
import { isLiteral, parseEndpoint, type SocketEndpoint } from '../net/endpoint.ts';

/** The desired peer in WireGuard. Null is a value: no key, no endpoint, no keepalive. */
export interface DesiredPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly endpoint: SocketEndpoint | null;
  readonly allowedIps: readonly Prefix[];
  /** Seconds between keepalives. Null for none. */
  readonly keepalive: number | null;
}

/** A wg-quick configuration as typed values: the content of the file, and the desired interface. */
export interface TunnelConfig {
  readonly privateKey: Secret;
  /** Null leaves the port to the kernel. */
  readonly listenPort: number | null;
  /** The mark on WireGuard's own packets. Null for none. */
  readonly fwmark: number | null;
  readonly mtu: number;
  /** The interface's own address, with the length of its on-link range. */
  readonly address: InterfaceAddress;
  readonly peers: readonly DesiredPeer[];
}

/**
 * Parses a wg-quick file strictly: one `[Interface]`, then `[Peer]`s, with only the keys that cpn
 * writes, each once, in its format. Refuses hooks, names to resolve, comments after a value, and
 * anything else that wg-quick would interpret. The error has the line number.
 */
export function parseConfig(text: string): TunnelConfig {
  const [first, ...rest] = readSections(text);
  if (first?.name !== 'Interface')
    throw new InvalidValue('wg-quick file', undefined, 'does not begin with [Interface]');
  const wrong = rest.find((section) => section.name !== 'Peer');
  if (wrong) throw new InvalidValue('wg-quick file', `[${wrong.name}]`, `is not expected on line ${wrong.line}`);
  return { ...readInterface(first), peers: rest.map(readPeer) };
}

interface ParsedSection {
  readonly name: string;
  readonly line: number;
  readonly values: ReadonlyMap<string, string>;
}

/** The allowed keys of a wg-quick file, by section: none that runs commands, resolves or routes. */
export const allowedKeys = {
  Interface: ['PrivateKey', 'Address', 'ListenPort', 'FwMark', 'MTU'],
  Peer: ['PublicKey', 'PresharedKey', 'AllowedIPs', 'Endpoint', 'PersistentKeepalive'],
} as const satisfies Record<string, readonly string[]>;

function readSections(text: string): ParsedSection[] {
  const sections: { name: string; line: number; values: Map<string, string> }[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const number = index + 1;
    if (line === '' || /^# [\x20-\x7e]*$/.test(line)) continue;
    const [, name] = /^\[([A-Za-z]+)\]$/.exec(line) ?? [];
    if (name !== undefined) {
      sections.push({ name, line: number, values: new Map() });
      continue;
    }
    const [, key, value] = /^([A-Za-z]+) = ([A-Za-z0-9+/=.:,[\] ]+)$/.exec(line) ?? [];
    const section = sections.at(-1);
    if (key === undefined || value === undefined || section === undefined) {
      throw new InvalidValue(
        `line ${number} of the wg-quick file`,
        undefined,
        'is neither a section, nor "Key = value"',
      );
    }
    const allowed: Readonly<Record<string, readonly string[]>> = allowedKeys;
    if (!allowed[section.name]?.includes(key) || section.values.has(key)) {
      throw new InvalidValue(`line ${number} of the wg-quick file`, key, `is not expected in [${section.name}]`);
    }
    section.values.set(key, value);
  }
  return sections;
}

function readInterface(section: ParsedSection): Omit<TunnelConfig, 'peers'> {
  const port = section.values.get('ListenPort');
  const mark = section.values.get('FwMark');
  return {
    privateKey: parseSecretKey(need(section, 'PrivateKey')),
    address: readInterfaceAddress(need(section, 'Address')),
    listenPort: port === undefined ? null : readNumber('ListenPort', port, 1, 65535),
    fwmark: mark === undefined ? null : readMark(mark),
    mtu: readNumber('MTU', need(section, 'MTU'), 576, 65535),
  };
}

function readPeer(section: ParsedSection): DesiredPeer {
  const { values } = section;
  const endpoint = values.get('Endpoint');
  const keepalive = values.get('PersistentKeepalive');
  const presharedKey = values.get('PresharedKey');
  return {
    publicKey: parsePublicKey(need(section, 'PublicKey'), 'PublicKey'),
    presharedKey: presharedKey === undefined ? null : parseSecretKey(presharedKey, 'preshared key'),
    allowedIps:
      values
        .get('AllowedIPs')
        ?.split(', ')
        .map((prefix) => restorePrefix(prefix, 'AllowedIPs')) ?? [],
    endpoint: endpoint === undefined ? null : readEndpoint(endpoint),
    keepalive: keepalive === undefined ? null : readNumber('PersistentKeepalive', keepalive, 1, 65535),
  };
}

function need({ name, line, values }: ParsedSection, key: string): string {
  const value = values.get(key);
  if (value === undefined)
    throw new InvalidValue('wg-quick file', undefined, `has no ${key} in the [${name}] of line ${line}`);
  return value;
}

function readInterfaceAddress(text: string): InterfaceAddress {
  const [given = '', length = '', ...more] = text.split('/');
  const address = parseAddress(given, 'Address');
  if (more.length > 0) throw new InvalidValue('Address', text, 'has more than one length');
  return { address, length: readNumber('Address', length, 0, familyOf(address) === 4 ? 32 : 128) };
}

/** The format of `wg showconf`. */
function readMark(text: string): number {
  if (/^0x[1-9a-f][0-9a-f]{0,7}$/.test(text)) return Number(text);
  throw new InvalidValue('FwMark', text, 'is not a mark', 'write it like 0xca6c');
}

function readEndpoint(text: string): SocketEndpoint {
  const endpoint = parseEndpoint(text, 'Endpoint');
  if (!isLiteral(endpoint)) throw new InvalidValue('Endpoint', text, 'is a name', 'the file holds addresses only');
  return endpoint;
}

function readNumber(field: string, text: string, min: number, max: number): number {
  const number = /^(0|[1-9][0-9]{0,4})$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= min && number <= max)) throw new InvalidValue(field, text, `is not a number from ${min} to ${max}`);
  return number;
}
