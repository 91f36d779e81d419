import { isIP } from 'node:net';
import { InvalidValue } from '../errors/index.ts';
import { type Address, familyOf, parseAddress, tryParseAddress } from './cidr.ts';

/** The address or name, and UDP port, at which a peer listens. cpn resolves names, never `wg`. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** An endpoint with an address instead of a name. */
export interface SocketEndpoint extends Endpoint {
  readonly host: Address;
}

/** RFC 1123 labels or underscores, but no last label of digits: `inet_aton` reads an address. */
const namePattern =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+$|0x[0-9a-f]*$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** A name without its trailing dot. Null if it is not valid. */
function readHostName(text: string): string | null {
  const name = text.replace(/\.$/, '');
  return namePattern.test(name) ? name.toLowerCase() : null;
}

/** Parses `HOST:PORT`, `IPv4:PORT` or `[IPv6]:PORT`. */
export function parseEndpoint(text: string, field = 'endpoint'): Endpoint {
  const [, bracketed, plain, portText] = /^(?:\[([^\]]*)\]|([^:[\]]*)):([1-9][0-9]{0,4})$/.exec(text) ?? [];
  const port = Number(portText);
  if (portText === undefined || port > 65535) throw notAnEndpoint(field, text);
  if (bracketed !== undefined) {
    if (!bracketed.includes(':') || tryParseAddress(bracketed) === null) throw notAnEndpoint(field, text);
    return { host: parseAddress(bracketed, field), port };
  }
  const host = tryParseAddress(plain ?? '') ?? readHostName(plain ?? '');
  if (host === null) throw notAnEndpoint(field, text);
  return { host, port };
}

/** Parses `IPv4:PORT` or `[IPv6]:PORT`. Null for anything else, and so for a name. */
export function tryParseSocket(text: string): SocketEndpoint | null {
  if (text.length > longestSocket) return null;
  try {
    const endpoint = parseEndpoint(text);
    return isLiteral(endpoint) ? endpoint : null;
  } catch (error) {
    if (error instanceof InvalidValue) return null;
    throw error;
  }
}

/** Exceeds any address in brackets with a port. */
const longestSocket = 64;

/** Parses a DNS name, or an address without brackets. */
export function parseHost(text: string, field = 'host'): string {
  if (text.includes(':') || tryParseAddress(text) !== null) return parseAddress(text, field);
  const name = readHostName(text);
  if (name === null) throw new InvalidValue(field, text, 'is neither a name nor an address');
  return name;
}

/** `HOST:PORT` as {@link parseEndpoint} reads it and `wg` prints it. IPv6 is in brackets. */
export function formatEndpoint({ host, port }: Endpoint): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True if the endpoint needs no resolver. */
export function isLiteral(endpoint: Endpoint): endpoint is SocketEndpoint {
  return tryParseAddress(endpoint.host) !== null;
}

export function sameEndpoint(a: Endpoint | null, b: Endpoint | null): boolean {
  return a?.host === b?.host && a?.port === b?.port;
}

/** Such as `loopback`, for an address at which no peer can listen for others. Otherwise null. */
export function unusableAddress(address: Address): string | null {
  const kinds = familyOf(address) === 4 ? unusable4 : unusable6;
  return kinds.find(([pattern]) => pattern.test(address))?.[1] ?? null;
}

const unusable4: readonly (readonly [RegExp, string])[] = [
  [/^0\./, 'unspecified'],
  [/^127\./, 'loopback'],
  [/^169\.254\./, 'link-local'],
  [/^(22[4-9]|23\d)\./, 'multicast'],
  [/^(24\d|25[0-5])\./, 'reserved'],
];

const unusable6: readonly (readonly [RegExp, string])[] = [
  [/^::$/, 'unspecified'],
  [/^::1$/, 'loopback'],
  [/^fe[89ab][0-9a-f]:/, 'link-local'],
  [/^ff[0-9a-f]{2}:/, 'multicast'],
];

function notAnEndpoint(field: string, text: string): InvalidValue {
  return new InvalidValue(
    field,
    text,
    'is not an endpoint',
    'write HOST:PORT, 203.0.113.22:51820 or [2001:db8::1]:51820',
  );
}

/** True for a loopback address or `localhost`: only this machine can be there. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && unusableAddress(parseAddress(host)) === 'loopback');
}

/** Peers dial this host at a port on which its tunnel does not listen. */
export interface PortMismatch {
  readonly endpoint: Endpoint;
  /** Where the tunnel listens. */
  readonly bound: number;
}

/** Only the host's own addresses count: at other addresses, a router may map another port. */
export function findPortMismatch(
  endpoint: Endpoint | null,
  bound: number | null,
  own: readonly Address[],
): PortMismatch | null {
  if (endpoint === null || bound === null || !isLiteral(endpoint)) return null;
  return own.includes(endpoint.host) && endpoint.port !== bound ? { endpoint, bound } : null;
}
