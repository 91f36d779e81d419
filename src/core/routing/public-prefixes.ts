import type { NetworkMap } from '../map/model.ts';
import { comparePrefixes, covers, type Family, familyOf, isDefaultRoute, type Prefix, rangeOf } from '../net/cidr.ts';

/** RFC 1918, RFC 6598 and RFC 4193. A range of other addresses proves nothing: they are in use on the internet. */
const privateRanges = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
] as readonly string[] as Prefix[];

/** True for a range of private addresses. */
export function isPrivate(range: Prefix): boolean {
  return privateRanges.some((each) => covers(each, range));
}

/**
 * How many addresses are in use on the internet. IPv4: the 221 blocks of /8 that are neither private nor special. IPv6: about eight blocks
 * of /12, which is what IANA has handed out of 2000::/3; of the whole of that, all that is in use would be one part in a hundred.
 */
const internet: Readonly<Record<Family, number>> = { 4: 221 * 2 ** 24, 6: 8 * 2 ** 116 };

/**
 * The part of it that a network may have. The largest holder of IPv4 addresses, with thirteen blocks of /8, and all the addresses of any
 * one cloud stay below.
 */
const most = 1 / 16;

/** Returns why a prefix must not lead into the tunnel, or null when it may. */
export type RouteGuard = (prefix: Prefix) => string | null;

/** All that a network leads to: its range and its routes. */
export function advertisedBy({ cidr, routes }: NetworkMap): readonly Prefix[] {
  return [cidr, ...routes];
}

/**
 * Refuses prefixes for what they are a part of: public ranges that together hold so much of the internet that they are the default
 * route in pieces. Which of them a host refuses for other reasons does not matter: all hosts judge alike, in any order.
 *
 * @param advertised all that the network leads to
 * @param allowed prefixes of `--allow-route`, which do not count
 */
export function guardShare(advertised: readonly Prefix[], allowed: readonly Prefix[]): RouteGuard {
  let sum: ReturnType<typeof sumUp> | undefined;
  return (prefix) => {
    if (isPrivate(prefix)) return null;
    sum ??= sumUp(advertised, allowed);
    const family = familyOf(prefix);
    const share = Math.max(shareOf([prefix], family), sum.pieces.has(prefix) ? sum.shares[family] : 0);
    if (share <= most) return null;
    const whole = `${Math.min(100, Math.ceil(share * 100))} % of the IPv${family} internet`;
    const limit = `more than ${Math.floor(most * 100)} % counts as the default route`;
    return `is one of the network's public ranges, which are ${whole}: ${limit}`;
  };
}

/** The public ranges, and what part of the internet they are together. A default route is refused for itself. */
function sumUp(advertised: readonly Prefix[], allowed: readonly Prefix[]) {
  const isAllowed = new Set(allowed);
  const counted = advertised.filter((each) => !isDefaultRoute(each) && !isPrivate(each) && !isAllowed.has(each));
  return { pieces: new Set(counted), shares: { 4: shareOf(counted, 4), 6: shareOf(counted, 6) } };
}

/** Prefixes are nested or apart: in their order, one that does not begin after the last one counted lies in it. */
function shareOf(prefixes: readonly Prefix[], family: Family): number {
  let [sum, last] = [0n, -1n];
  for (const prefix of prefixes.filter((each) => familyOf(each) === family).toSorted(comparePrefixes)) {
    const range = rangeOf(prefix);
    if (range.first <= last) continue;
    sum += range.last - range.first + 1n;
    last = range.last;
  }
  return Number(sum) / internet[family];
}
