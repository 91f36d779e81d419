import { isIP, SocketAddress } from 'node:net';
import IPCIDR from 'ip-cidr';
import { InvalidValue } from '../errors/index.ts';
import { memoizeByString } from '../util/memo.ts';

declare const brand: unique symbol;

/** An IPv4 or IPv6 address in the kernel's spelling (RFC 5952 for IPv6), without a zone. */
export type Address = string & { readonly [brand]: 'Address' };

/** `ADDRESS/BITS` in the kernel's spelling, with no host bits set. */
export type Prefix = string & { readonly [brand]: 'Prefix' };

export type Family = 4 | 6;

/** The numbers of a prefix's first and last address. */
export interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

/** Parses an address; refuses names, zones, ports, and IPv4 in any spelling but dotted decimal. */
export function parseAddress(text: string, field = 'address'): Address {
  const family = isIP(text);
  if (family === 0 || text.includes('%')) {
    throw new InvalidValue(field, text, 'is not an IP address', 'write it like 10.77.0.5');
  }
  return spell(text, family as Family, field);
}

/** Parses a prefix that must be canonical: host bits are an error that names the prefix meant. */
export function parsePrefix(text: string, field = 'prefix'): Prefix {
  const { canonical, given } = readPrefix(text, field);
  if (canonical !== given) {
    throw new InvalidValue(field, text, 'has host bits set', `the range meant is probably ${canonical}`);
  }
  return canonical;
}

/** Parses a prefix and clears its host bits, as the kernel does with `10.0.0.5/24`. */
export function maskPrefix(text: string, field = 'prefix'): Prefix {
  return readPrefix(text, field).canonical;
}

/** The prefix that holds this one address. */
export const hostPrefix = memoizeByString(
  (address: Address) => `${address}/${familyOf(address) === 4 ? 32 : 128}` as Prefix,
);

/** The address a prefix begins with. */
export function addressOf(prefix: Prefix): Address {
  return prefix.slice(0, prefix.indexOf('/')) as Address;
}

export function lengthOf(prefix: Prefix): number {
  return Number(prefix.slice(prefix.indexOf('/') + 1));
}

export function familyOf(value: Address | Prefix): Family {
  return value.includes(':') ? 6 : 4;
}

/** True when every address of `inner` is in `outer`. Families never mix. */
export function covers(outer: Prefix, inner: Prefix | Address): boolean {
  if (familyOf(outer) !== familyOf(inner)) return false;
  const a = rangeOf(outer);
  const b = rangeOf(inner.includes('/') ? (inner as Prefix) : hostPrefix(inner as Address));
  return a.first <= b.first && b.last <= a.last;
}

/** True when the two share an address. */
export function overlaps(one: Prefix, other: Prefix): boolean {
  if (familyOf(one) !== familyOf(other)) return false;
  const a = rangeOf(one);
  const b = rangeOf(other);
  return a.first <= b.last && b.first <= a.last;
}

/** First and last address of a prefix, as numbers. */
export const rangeOf = memoizeByString((prefix: Prefix) =>
  familyOf(prefix) === 4 ? readRange4(prefix) : readRange6(prefix),
);

/** The IPv4 address with this number. */
export function addressAt(number: bigint): Address {
  return spell4(Number(number));
}

/** Orders prefixes by family, then by address, then the wider first: the order in which they are printed and applied. */
export function comparePrefixes(a: Prefix, b: Prefix): number {
  if (familyOf(a) !== familyOf(b)) return familyOf(a) - familyOf(b);
  const [left, right] = [rangeOf(a).first, rangeOf(b).first];
  return left === right ? lengthOf(a) - lengthOf(b) : left < right ? -1 : 1;
}

function readPrefix(text: string, field: string): { canonical: Prefix; given: string } {
  const [, address, length] = /^([0-9a-fA-F.:]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  const family = isIP(address ?? '');
  const bits = Number(length);
  if (address === undefined || family === 0 || bits > (family === 4 ? 32 : 128)) {
    throw new InvalidValue(field, text, 'is not an address range', 'write it like 10.77.0.0/24');
  }
  const given = `${spell(address, family as Family, field)}/${bits}`;
  if (family === 4) {
    const number = numberOf(address);
    return { canonical: `${spell4(number - (number % 2 ** (32 - bits)))}/${bits}` as Prefix, given };
  }
  const start = new IPCIDR(given).start<string>();
  return { canonical: `${spell(start, family as Family, field)}/${bits}` as Prefix, given };
}

function readRange6(prefix: Prefix): AddressRange {
  const [first, last] = new IPCIDR(prefix).toRange<{ toString(): string }>({ type: 'bigInteger' });
  return { first: BigInt(first.toString()), last: BigInt(last.toString()) };
}

/** IPv4 by hand: ip-cidr takes 17 µs or more for each, which is half a second for a network of 5,000 peers. */
function readRange4(prefix: Prefix): AddressRange {
  const first = numberOf(addressOf(prefix));
  return { first: BigInt(first), last: BigInt(first + 2 ** (32 - lengthOf(prefix)) - 1) };
}

function numberOf(address: string): number {
  return address.split('.').reduce((number, octet) => number * 256 + Number(octet), 0);
}

function spell4(number: number): Address {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.') as Address;
}

function spell(text: string, family: Family, field: string): Address {
  if (family === 4) return text as Address;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  // ip-cidr reads ::ffff:1.2.3.4 as IPv4, and a tunnel carries no such address.
  if (address.includes('.'))
    throw new InvalidValue(field, text, 'is an IPv4 address in IPv6 clothing', 'write it as IPv4');
  return address as Address;
}

/** True for the default route and each half of it, which together are another spelling of it. */
export function isDefaultRoute(prefix: Prefix): boolean {
  return lengthOf(prefix) <= 1;
}
