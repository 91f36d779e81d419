import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { addressOf, familyOf, lengthOf, type Prefix } from '../../core/net/cidr.ts';

export type FindAddresses = (name: string) => Promise<readonly LookupAddress[]>;

export const resolveName: FindAddresses = (name) => lookup(name, { all: true });

/** Addresses that are refused unless the operator allows them. Messages show the reason. */
const refused = [
  ['0.0.0.0/8', 'unspecified'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'shared (CGNAT)'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'special'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'special'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::1/128', 'loopback'],
  ['fc00::/7', 'private'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
  // Teredo and 6to4 addresses contain an IPv4 address.
  ['2001::/32', 'special'],
  ['2002::/16', 'special'],
] as const;
const refusals = refused.map(([prefix, reason]) => [blockListOf([prefix as Prefix]), reason] as const);
/** All unicast addresses of IPv6, without IPv4-mapped and NAT64 addresses. */
const unicast6 = blockListOf(['2000::/3' as Prefix]);

/** Returns why a connection to an address is refused; null if it is permitted. */
export type RefuseAddress = (address: string) => string | null;

/** Refuses addresses that are not public, and all over plain http, except the ones in `allow`. */
export function createAddressCheck(allow: readonly Prefix[], isPlain: boolean): RefuseAddress {
  const allowed = blockListOf(allow);
  return (text) => {
    const address = text.replace(/%.*$/, '');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (allowed.check(address, family)) return null;
    const reason = refusals.find(([list]) => list.check(address, family))?.[1];
    if (reason !== undefined) return reason;
    if (family === 'ipv6' && !unicast6.check(address, family)) return 'special';
    return isPlain ? 'for https only' : null;
  };
}

function blockListOf(prefixes: readonly Prefix[]): BlockList {
  const list = new BlockList();
  for (const prefix of prefixes) {
    list.addSubnet(addressOf(prefix), lengthOf(prefix), familyOf(prefix) === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** The host of a URL, without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

export class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress';
}

/** Returns the permitted addresses of a host. @throws RefusedAddress if there are none */
export async function findReceiver(
  host: string,
  refuse: RefuseAddress,
  findAddresses: FindAddresses,
): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  const found = family === 0 ? await findAddresses(host) : [{ address: host, family }];
  const checked = found.map((each) => ({ ...each, reason: refuse(each.address) }));
  const usable = checked.filter(({ reason }) => reason === null);
  if (usable.length > 0) return usable.map(({ address, family }) => ({ address, family }));
  const reasons = checked.map(({ address, reason }) => `${address} is ${reason}`);
  throw new RefusedAddress(`${reasons.join(', ') || 'no address'}; --webhook-allow has the addresses that may be used`);
}
