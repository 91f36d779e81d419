import type { NetworkMap } from '../map/model.ts';
import { comparePrefixes, covers, type Family, familyOf, isDefaultRoute, type Prefix, rangeOf } from '../net/cidr.ts';

/** RFC 1918, RFC 6598, RFC 4193. Other ranges prove nothing: the internet uses them. */
const privateRanges = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
] as readonly string[] as Prefix[];

export function isPrivate(range: Prefix): boolean {
  return privateRanges.some((each) => covers(each, range));
}

/**
 * The number of addresses in use. IPv4: the 221 blocks of /8 that are neither private nor special.
 * IPv6: about eight blocks of /12, which IANA has assigned; they are one percent of 2000::/3.
 */
const internet: Readonly<Record<Family, number>> = { 4: 221 * 2 ** 24, 6: 8 * 2 ** 116 };

/** The most for one network. Each cloud and the largest holder (13 IPv4 blocks of /8) have less. */
const most = 1 / 16;

/** Returns why a prefix must not lead into the tunnel, or null. */
export type RouteGuard = (prefix: Prefix) => string | null;

/** Returns the range and the routes of a network. */
export function advertisedBy({ cidr, routes }: NetworkMap): readonly Prefix[] {
  return [cidr, ...routes];
}

/**
 * Refuses public ranges that together amount to a default route. All `advertised` ranges count,
 * also those that the host refuses otherwise, so all hosts reach the same verdict, in any order.
 * Prefixes of `--allow-route` (`allowed`) do not count.
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

/** The public ranges and their part of the internet. Default routes are refused separately. */
function sumUp(advertised: readonly Prefix[], allowed: readonly Prefix[]) {
  const isAllowed = new Set(allowed);
  const counted = advertised.filter((each) => !isDefaultRoute(each) && !isPrivate(each) && !isAllowed.has(each));
  return { pieces: new Set(counted), shares: { 4: shareOf(counted, 4), 6: shareOf(counted, 6) } };
}

/** Counts distinct addresses: a sorted prefix lies in the last counted prefix, or after it. */
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
