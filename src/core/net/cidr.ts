import { isIPv4, SocketAddress } from 'node:net';
import IPCIDR from 'ip-cidr';
import { InvalidValue } from '../errors/index.ts';
import { memoizeByString } from '../util/memo.ts';

declare const brand: unique symbol;

/** An IPv4 or IPv6 address in the kernel's format (RFC 5952 for IPv6), without a zone. */
export type Address = string & { readonly [brand]: 'Address' };

/** `ADDRESS/BITS` in the kernel's format, without host bits. */
export type Prefix = string & { readonly [brand]: 'Prefix' };

export type Family = 4 | 6;

/** The numbers of a prefix's first and last address. */
export interface AddressRange {
  readonly first: bigint;
  readonly last: bigint;
}

/** Parses an address. Refuses names, zones, ports, and IPv4 in any format except dotted decimal. */
export function parseAddress(text: string, field = 'address'): Address {
  const address = tryParseAddress(text);
  if (address === null) throw new InvalidValue(field, text, 'is not an IP address', 'write it like 10.77.0.5');
  if (isClothed(address)) throw new InvalidValue(field, text, 'is an IPv4-mapped IPv6 address', 'write it as IPv4');
  return address;
}

/** ip-cidr reads ::ffff:1.2.3.4 as IPv4, and no tunnel carries such an address. */
function isClothed(address: Address): boolean {
  return address.includes(':') && address.includes('.');
}

/** The address in the kernel's format. Null if the text is none. */
export function tryParseAddress(text: string): Address | null {
  if (!text.includes(':')) return isIPv4(text) ? (text as Address) : null;
  // Avoids isIPv6, whose expression takes 3 ms to compile.
  if (!/^[0-9a-f:.]{2,45}$/i.test(text)) return null;
  try {
    return new SocketAddress({ address: text, family: 'ipv6' }).address as Address;
  } catch {
    return null;
  }
}

/** Parses a canonical prefix. For host bits, throws an error that names the probable prefix. */
export function parsePrefix(text: string, field = 'prefix'): Prefix {
  checkPrefix(text, field);
  return restorePrefix(text, field);
}

/** Parses a prefix and clears its host bits, as the kernel does with `10.0.0.5/24`. */
export function parseRange(text: string, field = 'prefix'): Prefix {
  checkPrefix(text, field);
  return maskPrefix(text, field);
}

/** Reads a prefix that was parsed before, such as one from our files. Host bits are an error. */
export function restorePrefix(text: string, field = 'prefix'): Prefix {
  const { canonical, given } = readPrefix(text, field);
  if (canonical !== given) {
    throw new InvalidValue(field, text, 'has host bits set', `you probably mean ${canonical}`);
  }
  return canonical;
}

/** Reads a prefix from the kernel, or one built from a parsed address, and clears its host bits. */
export function maskPrefix(text: string, field = 'prefix'): Prefix {
  return readPrefix(text, field).canonical;
}

/** The prefix that contains only this address. */
export const hostPrefix = memoizeByString(
  (address: Address) => `${address}/${familyOf(address) === 4 ? 32 : 128}` as Prefix,
);

/** Parses a prefix. An address becomes its host prefix. */
export function parsePrefixOrAddress(text: string, field: string): Prefix {
  if (text.includes('/')) return parsePrefix(text, field);
  if (tryParseAddress(text) !== null) return hostPrefix(parseAddress(text, field));
  throw new InvalidValue(field, text, 'is neither a CIDR nor an address', 'write it like 10.0.0.0/8 or 10.77.0.5');
}

/** The first address of a prefix. */
export function addressOf(prefix: Prefix): Address {
  return prefix.slice(0, prefix.indexOf('/')) as Address;
}

export function lengthOf(prefix: Prefix): number {
  return Number(prefix.slice(prefix.indexOf('/') + 1));
}

export function familyOf(value: Address | Prefix): Family {
  return value.includes(':') ? 6 : 4;
}

/** True if `outer` contains every address of `inner`. False for different families. */
export function covers(outer: Prefix, inner: Prefix | Address): boolean {
  if (familyOf(outer) !== familyOf(inner)) return false;
  const a = rangeOf(outer);
  const b = rangeOf(inner.includes('/') ? (inner as Prefix) : hostPrefix(inner as Address));
  return a.first <= b.first && b.last <= a.last;
}

/** True if both share an address. */
export function overlaps(one: Prefix, other: Prefix): boolean {
  if (familyOf(one) !== familyOf(other)) return false;
  const a = rangeOf(one);
  const b = rangeOf(other);
  return a.first <= b.last && b.first <= a.last;
}

export const rangeOf = memoizeByString((prefix: Prefix) =>
  familyOf(prefix) === 4 ? readRange4(prefix) : readRange6(prefix),
);

/** The IPv4 address with this number. */
export function addressAt(number: bigint): Address {
  return spell4(Number(number));
}

/** The address of a family with this number. */
export function addressIn(family: Family, number: bigint): Address {
  if (family === 4) return addressAt(number);
  const groups = [7, 6, 5, 4, 3, 2, 1, 0].map((at) => ((number >> BigInt(16 * at)) & 0xffffn).toString(16));
  // Avoids parseAddress, which refuses the end of some ranges, such as ::ffff:255.255.255.255.
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address as Address;
}

/** Sorts by family, address and length, widest first: the order of output and changes. */
export function comparePrefixes(a: Prefix, b: Prefix): number {
  if (familyOf(a) !== familyOf(b)) return familyOf(a) - familyOf(b);
  const [left, right] = [rangeOf(a).first, rangeOf(b).first];
  return left === right ? lengthOf(a) - lengthOf(b) : left < right ? -1 : 1;
}

/** Validates external input with ip-cidr. @throws InvalidValue */
function checkPrefix(text: string, field: string): void {
  if (!IPCIDR.isValidCIDR(text)) throw notPrefix(text, field);
}

function notPrefix(text: string, field: string): InvalidValue {
  return new InvalidValue(field, text, 'is not an address range', 'write it like 10.77.0.0/24');
}

function readPrefix(text: string, field: string): ReadPrefix {
  const read = tryReadPrefix(text);
  if (read !== null) return read;
  const base = tryParseAddress(text.slice(0, Math.max(0, text.indexOf('/'))));
  if (base !== null) parseAddress(base, field);
  throw notPrefix(text, field);
}

interface ReadPrefix {
  readonly canonical: Prefix;
  /** The prefix with the host bits of the input. */
  readonly given: string;
}

const tryReadPrefix = memoizeByString((text: string): ReadPrefix | null => {
  const [, base = '', length] = /^([0-9a-fA-F.:]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  const address = tryParseAddress(base);
  const bits = Number(length);
  if (address === null || isClothed(address) || bits > (familyOf(address) === 4 ? 32 : 128)) return null;
  return { canonical: `${firstOf(address, bits)}/${bits}` as Prefix, given: `${address}/${bits}` };
});

/** Clears all bits after `bits`. Implemented here, because ip-cidr takes 20 µs per address. */
function firstOf(address: Address, bits: number): Address {
  if (familyOf(address) === 4) {
    const number = numberOf(address);
    return spell4(number - (number % 2 ** (32 - bits)));
  }
  const masked = groupsOf(address).map((group, at) => {
    const kept = Math.min(16, Math.max(0, bits - 16 * at));
    return (group & (0xffff << (16 - kept))).toString(16);
  });
  return parseAddress(masked.join(':'));
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: Address): number[] {
  const [left = [], right = []] = address.split('::').map((half) => (half === '' ? [] : half.split(':')));
  const groups = [...left, ...Array(8 - left.length - right.length).fill('0'), ...right];
  return groups.map((group) => Number.parseInt(group, 16));
}

function readRange6(prefix: Prefix): AddressRange {
  const first = groupsOf(addressOf(prefix)).reduce((number, group) => (number << 16n) | BigInt(group), 0n);
  return { first, last: first + (1n << BigInt(128 - lengthOf(prefix))) - 1n };
}

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

/** True for the default route and each of its halves, which together are equal to it. */
export function isDefaultRoute(prefix: Prefix): boolean {
  return lengthOf(prefix) <= 1;
}

/** An address with its assigned prefix length. `10.77.0.5/24` keeps its host bits. */
export interface InterfaceAddress {
  readonly address: Address;
  readonly length: number;
}

/** The on-link range of an address, to which the kernel adds a route. Null for a /32. */
export function onLinkRange(address: InterfaceAddress): Prefix | null {
  return address.length === 32 ? null : maskPrefix(formatInterfaceAddress(address));
}

export function formatInterfaceAddress({ address, length }: InterfaceAddress): string {
  return `${address}/${length}`;
}
