import { covers, familyOf, hostPrefix, lengthOf, type Prefix } from './cidr.ts';
import { isDefaultRoute } from './full-tunnel.ts';
import type { NetworkMap, Options, Peer } from './model.ts';
import { assignedRoutes } from './route-owner.ts';
import type { FirewallRule } from './step.ts';

/** What the packet rules of a connector follow from. */
export interface Forwarding {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly options: Pick<Options, 'masquerade'>;
  /** Peers that do not answer here, and are reached through another connector. */
  readonly detours: readonly Peer[];
}

/**
 * The packet rules of a connector, in their order: what is advertised is forwarded, and nothing else that comes from the
 * tunnel. What is relayed gets this connector's own address in any case, and what its LAN begins unless options say no: a
 * host takes from a connector only what bears that connector's address, or an address of the routes that it holds this very
 * connector for, and hosts may differ in that for a while.
 */
export function forwardingRules({ map, self, options, detours }: Forwarding): readonly FirewallRule[] {
  const ofFamily = (route: Prefix) => familyOf(route) === familyOf(map.cidr);
  const served = assignedRoutes(map, self).filter(ofFamily);
  const elsewhere = map.routes.filter((route) => ofFamily(route) && !served.includes(route));
  const range = rangeOf(map);
  const there = widest([...range, ...elsewhere]);
  // A default route is for connections that begin within the network.
  const members = widest([...range, ...elsewhere.filter((route) => !isDefaultRoute(route))]);
  const lan = widest(served);
  const connectors = map.peers.filter(({ id, type }) => type === 'connector' && id !== self.id);
  const hasLan = lan.length > 0;
  const hasDetours = detours.length > 0 && connectors.length > 0;
  return [
    { rule: 'clamp-mss', way: 'out' },
    { rule: 'clamp-mss', way: 'in' },
    ...(hasDetours ? [{ rule: 'refuse-detour', from: addresses(connectors), to: addresses(detours) } as const] : []),
    { rule: 'accept-replies' },
    { rule: 'accept-published', at: self.address },
    { rule: 'accept-relayed', from: members, to: there },
    ...(hasLan ? [{ rule: 'accept-inward', from: members, to: lan } as const] : []),
    ...(hasLan ? [{ rule: 'accept-outward', from: lan, to: there } as const] : []),
    { rule: 'refuse-rest' },
    { rule: 'masquerade-relayed', from: members, except: self.address },
    ...(hasLan && options.masquerade
      ? ([
          { rule: 'masquerade', from: range, to: lan },
          { rule: 'masquerade-outward', from: lan, to: there },
        ] as const)
      : []),
  ];
}

/** The network's own addresses; one by one where its range is not known. */
function rangeOf({ cidr, peers }: NetworkMap): Prefix[] {
  return lengthOf(cidr) < 32 ? [cidr] : widest([cidr, ...addresses(peers)]);
}

function addresses(peers: readonly Peer[]): Prefix[] {
  return peers.map(({ address }) => hostPrefix(address));
}

/** Without what another one covers: the elements of an nft set must not overlap. */
function widest(prefixes: readonly Prefix[]): Prefix[] {
  const distinct = [...new Set(prefixes)];
  return distinct.filter((inner) => !distinct.some((outer) => outer !== inner && covers(outer, inner)));
}
