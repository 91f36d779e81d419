import { type Address, maskPrefix, type Prefix, parseAddress } from '../core/cidr.ts';
import { InvalidValue } from '../core/errors.ts';

/**
 * Reads an address as the kernel, a resolver or a file spells it: the zone goes, IPv4 in IPv6 clothing (RFC 4291,
 * 2.5.5.2) becomes IPv4. Null for anything else, because what surrounds us is not ours to refuse.
 */
export function readAddress(text: string): Address | null {
  const [bare = ''] = text.split('%', 1);
  try {
    return parseAddress(bare.replace(/^::ffff:(?=\d+\.)/i, ''));
  } catch (error) {
    if (error instanceof InvalidValue) return null;
    throw error;
  }
}

/** Reads a range, or an address that stands for the range of itself, as the kernel's tools print it. */
export function readPrefix(text: string): Prefix {
  const range = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
  // Core knows no range in IPv4 clothing, and somebody may have set one by hand: as it is spelled it is seen, and is a
  // difference that a pass takes away.
  return /^::ffff:[\d.]{7,15}\/\d{1,3}$/i.test(range) ? (range as Prefix) : maskPrefix(range);
}
