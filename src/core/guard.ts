import type { Surroundings } from './actual.ts';
import { type Address, covers, familyOf, hostPrefix, lengthOf, overlaps, type Prefix } from './cidr.ts';
import { isDefaultRoute } from './full-tunnel.ts';
import { sameList } from './keep-same.ts';
import type { NetworkMap } from './model.ts';
import { perObject } from './per-object.ts';
import { PrefixIndex } from './prefix-index.ts';
import { remember } from './remember.ts';

/** Everything that a route into the tunnel must not take away from this host. */
export interface Ground {
  readonly surroundings: Surroundings;
  /** The addresses of the control plane. */
  readonly api: readonly Address[];
  /** The addresses at which the peers are reached outside the tunnel. */
  readonly endpoints: readonly Address[];
  /** What the other networks of this host have taken. */
  readonly taken: readonly { readonly prefix: Prefix; readonly by: string }[];
  /** The interfaces of networks that this host joined later than this one: they stand back. */
  readonly later: readonly string[];
  /** Prefixes that a person lets through. */
  readonly allowed: readonly Prefix[];
}

/** True when nothing that a route could take away is other than it was. */
export function sameGround(one: Ground, other: Ground): boolean {
  return (
    one.surroundings === other.surroundings &&
    one.allowed === other.allowed &&
    sameList(one.endpoints, other.endpoints) &&
    sameList(one.api, other.api) &&
    sameList(one.later, other.later) &&
    sameList(
      one.taken.flatMap(({ prefix, by }) => [prefix, by]),
      other.taken.flatMap(({ prefix, by }) => [prefix, by]),
    )
  );
}

/** Says why `prefix` must not lead into the tunnel, or null when it may. */
export function refuse(prefix: Prefix, ground: Ground): string | null {
  if (ground.allowed.includes(prefix)) return isDefaultRoute(prefix) ? refuseTunnel(prefix, ground) : null;
  return refuseKind(prefix) ?? refuseOverlap(prefix, ground) ?? refuseCover(prefix, ground);
}

/** Says why this host must not have `address` in the tunnel, or null when it may: what it has itself it cannot reach elsewhere. */
export function refuseOwn(address: Address, ground: Ground): string | null {
  const prefix = hostPrefix(address);
  return ground.allowed.includes(prefix) ? null : (refuseKind(prefix) ?? refuseCover(prefix, ground));
}

/** Says why a route to `prefix` is none of a network's own making, or null: its addresses belong to its peers. */
export function refuseInside(prefix: Prefix, { cidr }: NetworkMap): string | null {
  return covers(cidr, prefix) ? `lies within ${cidr}, the network itself` : null;
}

/**
 * A full tunnel that a person wants is one of IPv4, and one on a host. It keeps out, by policy rules, what it covers.
 */
function refuseTunnel(prefix: Prefix, { taken }: Ground): string | null {
  if (familyOf(prefix) === 6) return 'is a default route of IPv6, for which this host has no address in the network';
  const other = taken.find((network) => isDefaultRoute(network.prefix));
  return other ? `overlaps ${other.prefix} of ${other.by}` : null;
}

const refuseKind = remember((prefix: Prefix): string | null => {
  if (lengthOf(prefix) === 0) return 'is the default route';
  if (lengthOf(prefix) === 1) return 'is half of the default route';
  const special = specialRanges.find(([range]) => overlaps(range as Prefix, prefix));
  return special ? `overlaps ${special[1]} addresses` : null;
});

function refuseOverlap(prefix: Prefix, { surroundings, taken }: Ground): string | null {
  const subnet = surroundings.connected.find((connected) => overlaps(connected.prefix, prefix));
  if (subnet) return `overlaps ${subnet.prefix}, which this host is in (${subnet.link})`;
  const other = indexTaken(taken).findOverlap(prefix);
  if (other) return `overlaps ${other.prefix} of ${other.by}`;
  const route = indexRouted(surroundings).get(prefix);
  return route ? `leads to ${route.link} on this host already` : null;
}

function refuseCover(prefix: Prefix, { surroundings, api, endpoints }: Ground): string | null {
  const endpoint = indexEndpoints(endpoints).findWithin(prefix);
  const keep: readonly (readonly [string, readonly Address[]])[] = [
    ['the control plane', api],
    ["a peer's endpoint", endpoint === null ? [] : [endpoint]],
    ['the default gateway', surroundings.gateways],
    ['a resolver', surroundings.resolvers],
    ['an SSH client', surroundings.sshClients],
  ];
  for (const [what, addresses] of keep) {
    const lost = addresses.find((address) => covers(prefix, address));
    if (lost) return `covers ${what} (${lost})`;
  }
  return null;
}

// A large network has thousands of each, and every one of its routes is asked about all of them.
const indexEndpoints = perObject(
  (endpoints: Ground['endpoints']) => new PrefixIndex(endpoints.map((each) => [hostPrefix(each), each])),
);

/** The full tunnel of another network takes only what has no other route. */
const indexTaken = perObject((taken: Ground['taken']) => {
  const others = taken.filter(({ prefix }) => !isDefaultRoute(prefix));
  return new PrefixIndex(others.map((each) => [each.prefix, each]));
});

const indexRouted = perObject(
  ({ routed }: Surroundings) => new Map(routed.toReversed().map((each) => [each.prefix, each])),
);

/** RFC 6890 and RFC 4291: ranges that never lead to another host's network. */
const specialRanges: readonly (readonly [string, string])[] = [
  ['0.0.0.0/8', 'unspecified'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/127', 'loopback'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
];
