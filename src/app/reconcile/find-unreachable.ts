import { expectCpnError } from '../../core/errors/index.ts';
import type { Device } from '../../core/host-state/actual.ts';
import { tunnelMark } from '../../core/host-state/marks.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import type { Address } from '../../core/net/cidr.ts';
import { type Endpoint, isLiteral } from '../../core/net/endpoint.ts';
import type { Observer } from '../../host/host.ts';
import type { Joined } from '../../store/state/state.ts';

/**
 * Returns endpoint addresses without a route outside the tunnel. It checks only endpoints with an
 * alternative: names with several addresses, and learned addresses of peers with another endpoint.
 */
export async function findUnreachable(
  host: Observer,
  state: Joined,
  device: Device | null,
): Promise<readonly Address[]> {
  const { resolved, membership } = state;
  const learned = new Map(device?.peers.map((peer) => [peer.publicKey, peer.endpoint?.host]));
  const choices = membership.map.peers.flatMap(({ endpoint, publicKey }): readonly Address[] => {
    if (endpoint === null) return [];
    const given = givenAddresses(endpoint, resolved);
    const other = learned.get(publicKey);
    const isLearned = other !== undefined && !given.includes(other);
    return [...(given.length > 1 ? given : []), ...(isLearned && given.length > 0 ? [other] : [])];
  });
  // Peers may share a name.
  return withoutRoute(host, state, [...new Set(choices)]);
}

/** Each lookup briefly uses a socket: a process may have 1,024 of them. */
const atOnce = 64;

/** Returns the addresses to which this host has no route outside the tunnel, sorted. */
export async function withoutRoute(
  host: Observer,
  state: Joined,
  addresses: readonly Address[],
): Promise<readonly Address[]> {
  const found: Address[] = [];
  for (let at = 0; at < addresses.length; at += atOnce) {
    const some = addresses.slice(at, at + atOnce);
    const reachable = await Promise.all(some.map((address) => isReachable(host, state, address)));
    found.push(...some.filter((_, index) => !reachable[index]));
  }
  return found.toSorted();
}

function givenAddresses(endpoint: Endpoint, resolved: Joined['resolved']): readonly Address[] {
  return isLiteral(endpoint) ? [endpoint.host] : addressesOf(endpoint.host, resolved);
}

/** True if the kernel routes WireGuard's packets to it by another interface than the tunnel. */
export async function isReachable(
  host: Observer,
  { interface: link, membership }: Joined,
  address: Address,
): Promise<boolean> {
  const source = await host.sourceAddress(address);
  if (source === null || source !== membership.peer.address) return source !== null;
  // WireGuard's packets have the mark of a full tunnel; all others are routed into it.
  try {
    const route = await host.route(address, { mark: tunnelMark });
    return route.link !== null && route.link !== link;
  } catch (error) {
    // If nothing can be read, it counts as reachable: the pass continues with WireGuard alone.
    expectCpnError(error);
    return true;
  }
}
