import { InvalidValue } from '../errors/index.ts';
import { type Address, familyOf, parseAddress, tryParseAddress } from './cidr.ts';

/** Where a peer listens: a DNS name or an address, and a UDP port. Names are resolved by us, never by `wg`. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** An endpoint that needs no resolver. */
export interface SocketEndpoint extends Endpoint {
  readonly host: Address;
}

/**
 * RFC 1123 labels, and underscores, which resolvers take. A last label of digits only is refused, because `inet_aton` would take the
 * name for an address.
 */
const namePattern =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+$|0x[0-9a-f]*$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** A name without the dot that ends an absolute one; null for what is no name. */
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

/** Parses a DNS name, or an address without brackets. */
export function parseHost(text: string, field = 'host'): string {
  if (text.includes(':') || tryParseAddress(text) !== null) return parseAddress(text, field);
  const name = readHostName(text);
  if (name === null) throw new InvalidValue(field, text, 'is neither a name nor an address');
  return name;
}

/** `HOST:PORT`, with an IPv6 address in brackets: what {@link parseEndpoint} reads and `wg` prints. */
export function formatEndpoint({ host, port }: Endpoint): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True when the endpoint needs no resolver. */
export function isLiteral(endpoint: Endpoint): endpoint is SocketEndpoint {
  return tryParseAddress(endpoint.host) !== null;
}

export function sameEndpoint(a: Endpoint | null, b: Endpoint | null): boolean {
  return a?.host === b?.host && a?.port === b?.port;
}

/** Why no peer can listen there for others, or null: loopback, unspecified, link-local, multicast, broadcast. */
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
