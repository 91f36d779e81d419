import { comparePrefixes, type Prefix } from './cidr.ts';
import { comparePeerIds } from './model.ts';
import type { RouteOwner } from './route-owner.ts';
import type { Standpoint, Topology } from './topology.ts';

/**
 * Who reaches whom where the service gave a ready wg-quick text: everybody in it directly, by what the text says. A prefix of it that
 * the map holds for a route is one that may be declined or refused as any other; there is nobody to take over.
 *
 * @param own the routes that this host is there to serve
 */
export function reachGiven({ map, self, acceptRoutes }: Standpoint, own: readonly Prefix[]): Topology {
  const others = map.peers.filter((peer) => peer.id !== self.id).toSorted((a, b) => comparePeerIds(a.id, b.id));
  const routes = map.routes.map((prefix): RouteOwner => {
    if (own.includes(prefix)) {
      const note = self.withdrawn.includes(prefix) ? 'withdrawn here' : 'served here';
      return { prefix, via: null, hop: null, standby: [], note };
    }
    const via = others.find((peer) => peer.given?.allowedIps.includes(prefix)) ?? null;
    if (via === null) return { prefix, via, hop: null, standby: [], note: 'no connector' };
    return { prefix, via, hop: acceptRoutes ? via : null, standby: [], note: acceptRoutes ? null : 'not accepted' };
  });
  const declined = new Set<Prefix>(routes.filter(({ hop }) => hop === null).map(({ prefix }) => prefix));
  const reaches = others.map((peer) => ({
    peer,
    endpoint: peer.endpoint,
    allowedIps: (peer.given?.allowedIps ?? []).filter((prefix) => !declined.has(prefix)).toSorted(comparePrefixes),
    keepalive: peer.given?.keepalive ?? null,
  }));
  return { reaches, routes, relay: null, detours: [] };
}
