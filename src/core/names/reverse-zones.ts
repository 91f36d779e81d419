import { addressAt, addressOf, lengthOf, overlaps, type Prefix, rangeOf } from '../net/cidr.ts';

/** The maximum number of zones of a route. */
const mostZones = 16;

/**
 * The reverse zones of an IPv4 prefix (RFC 1035, 3.5), which together cover exactly its addresses.
 * Leaves out zones with an address in `local`. Empty if that takes more than 16 zones, or a zone
 * larger than the prefix.
 */
export function findReverseZones(prefix: Prefix, local: readonly Prefix[]): string[] {
  const length = lengthOf(prefix);
  const octets = Math.ceil(length / 8);
  const count = 2 ** (8 * octets - length);
  if (octets === 0 || octets === 4 || count > mostZones) return [];
  const size = 256n ** BigInt(4 - octets);
  const zones = Array.from({ length: count }, (_, index) => {
    const first = addressAt(rangeOf(prefix).first + BigInt(index) * size);
    return `${first}/${8 * octets}` as Prefix;
  });
  return zones.filter((zone) => !local.some((each) => overlaps(zone, each))).map(nameZone);
}

function nameZone(zone: Prefix): string {
  const labels = addressOf(zone)
    .split('.')
    .slice(0, lengthOf(zone) / 8);
  return `${labels.toReversed().join('.')}.in-addr.arpa`;
}
