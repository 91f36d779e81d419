import { memoizeByString } from '../util/memo.ts';
import { lengthOf, overlaps, type Prefix } from './cidr.ts';

/** RFC 6890, RFC 4291: ranges that lead to no other host's network, or to any host. */
export const specialRanges = [
  ['0.0.0.0/8', 'unspecified'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/127', 'loopback'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
  // Stands for all of IPv4 (RFC 6052).
  ['64:ff9b::/96', 'NAT64'],
] as unknown as readonly (readonly [Prefix, string])[];

/**
 * Explains why a prefix is no network of its own: a default route, half of one, or a special range.
 * Null for any other prefix.
 */
export const findSpecialKind = memoizeByString((prefix: Prefix): string | null => {
  if (lengthOf(prefix) === 0) return 'is the default route';
  if (lengthOf(prefix) === 1) return 'is half of the default route';
  const special = specialRanges.find(([range]) => overlaps(range, prefix));
  return special ? `overlaps ${special[1]} addresses` : null;
});
