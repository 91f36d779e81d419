import type { SshClient, Surroundings } from './actual.ts';
import { type Address, covers, familyOf, hostPrefix, lengthOf, overlaps, type Prefix } from './cidr.ts';
import { isDefaultRoute } from './full-tunnel.ts';
import { type Inside, isServerInside, isSessionInside } from './inside.ts';
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
  /** What is reached through the tunnel itself, and so is not taken away by it. */
  readonly inside: Inside;
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
    sameList(one.api, other.api) &&
    sameList(keptOutside(one).flat(2), keptOutside(other).flat(2)) &&
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
  return refuseKind(prefix) ?? refuseOverlap(prefix, ground) ?? refuseCover(prefix, keptOutside(ground));
}

/**
 * Says why this host must not have `address` in the tunnel, or null when it may: what it has itself it cannot reach elsewhere.
 *
 * @param endpoints the addresses at which the peers are reached
 */
export function refuseOwn(address: Address, { surroundings, api, allowed }: Ground, endpoints: readonly Address[]) {
  const prefix = hostPrefix(address);
  if (allowed.includes(prefix)) return null;
  const needed: Kept = [...name({ ...surroundings, api }), ["a peer's endpoint", endpoints]];
  return refuseKind(prefix) ?? refuseCover(prefix, needed);
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
  const special = specialRanges.find(([range]) => overlaps(range, prefix));
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

function refuseCover(prefix: Prefix, kept: Kept): string | null {
  for (const [what, addresses] of kept) {
    const lost = addresses.find((address) => covers(prefix, address));
    if (lost) return `covers ${what} (${lost})`;
  }
  return null;
}

/** What must stay within reach outside the tunnel, by what it is called. */
type Kept = readonly (readonly [what: string, addresses: readonly Address[]])[];

/** What this host reaches outside the tunnel now. */
const keptOutside = perObject((ground: Ground): Kept => {
  const { inside, surroundings, allowed } = ground;
  const { range } = inside;
  const takesRange = allowed.includes(range) || (refuseKind(range) ?? refuseOverlap(range, ground)) === null;
  const isServer = (address: Address) => !isServerInside(address, inside, surroundings, takesRange);
  return name({
    api: ground.api.filter(isServer),
    gateways: surroundings.gateways,
    resolvers: surroundings.resolvers.filter(isServer),
    sshClients: surroundings.sshClients.filter((each) => !isSessionInside(each, inside, surroundings, takesRange)),
  });
});

function name(needed: Pick<Ground, 'api'> & Pick<Surroundings, 'gateways' | 'resolvers' | 'sshClients'>): Kept {
  return [
    ['the control plane', needed.api],
    ['the default gateway', needed.gateways],
    ['a resolver', needed.resolvers],
    ['an SSH client', needed.sshClients.map(({ address }: SshClient) => address)],
  ];
}

/** The full tunnel of another network takes only what has no other route. */
const indexTaken = perObject((taken: Ground['taken']) => {
  const others = taken.filter(({ prefix }) => !isDefaultRoute(prefix));
  return new PrefixIndex(others.map((each) => [each.prefix, each]));
});

const indexRouted = perObject(
  ({ routed }: Surroundings) => new Map(routed.toReversed().map((each) => [each.prefix, each])),
);

/** RFC 6890 and RFC 4291: ranges that never lead to another host's network. */
export const specialRanges = [
  ['0.0.0.0/8', 'unspecified'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/127', 'loopback'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
] as unknown as readonly (readonly [Prefix, string])[];
