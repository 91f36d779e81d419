import type { NetworkMap, Peer } from '../map/model.ts';
import type { ProbeTarget } from '../map/options.ts';
import {
  type Address,
  addressAt,
  addressOf,
  covers,
  familyOf,
  isDefaultRoute,
  lengthOf,
  type Prefix,
  rangeOf,
  tryParseAddress,
} from '../net/cidr.ts';

/** Packets of a member of the network that come out of a connector's tunnel. */
export interface ForwardedPackets {
  /** An address in the network other than this host's. */
  readonly source: Address;
  /** Sample addresses of each served prefix. If one of them is forwarded, the prefix is served. */
  readonly destinations: readonly { readonly route: Prefix; readonly addresses: readonly Address[] }[];
}

/** All but the last are in every full routing table. Only a default route leads to the last. */
const publicAddresses = ['1.1.1.1', '8.8.8.8', '193.0.6.139', '128.0.0.1'] as unknown as readonly Address[];

/** Returns the packets that test a connector's forwarding; null if it serves no IPv4. */
export function findForwarded(
  { peers, cidr }: Pick<NetworkMap, 'peers' | 'cidr'>,
  self: Peer,
  served: readonly Prefix[],
  probes: readonly ProbeTarget[],
): ForwardedPackets | null {
  const routes = served.filter((route) => familyOf(route) === 4);
  const member = peers.find(({ id, address }) => id !== self.id && !address.includes(':'))?.address;
  const source = member ?? findOther(cidr, self.address);
  if (routes.length === 0 || source === null) return null;
  const targets = probes.flatMap(({ host }) => tryParseAddress(host) ?? []);
  return {
    source,
    destinations: routes.map((route) => {
      const named = isDefaultRoute(route) ? [] : targets.filter((target) => covers(route, target));
      return { route, addresses: named.length > 0 ? named : addressesIn(route) };
    }),
  };
}

function addressesIn(route: Prefix): readonly Address[] {
  if (lengthOf(route) === 0) return publicAddresses;
  const { first, last } = rangeOf(route);
  return last - first < 7n ? [addressOf(route)] : [(first + last) / 2n + 2n, last - 1n].map(addressAt);
}

function findOther(cidr: Prefix, own: Address): Address | null {
  const { first, last } = rangeOf(cidr);
  if (familyOf(cidr) !== 4 || last - first < 3n) return null;
  return [first + 1n, first + 2n].map(addressAt).find((address) => address !== own) ?? null;
}
