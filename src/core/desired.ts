import { covers, familyOf, hostPrefix, lengthOf, type Prefix } from './cidr.ts';
import { sameEndpoint } from './endpoint.ts';
import { findIngresses, type HostForwarding, type Ingress } from './forward/ingress.ts';
import { forwardingRules, localRules } from './forwarding-rules.ts';
import { isDefaultRoute, markedSourceKey, tunnelRules } from './full-tunnel.ts';
import { type Ground, refuse, refuseInside } from './guard.ts';
import { renderBlock } from './hosts-block.ts';
import { keepSame, sameList } from './keep-same.ts';
import type { KeyPair } from './keys.ts';
import { allForwardingKey, looseFilter, sourceFilterKey } from './link-sysctl.ts';
import { judgeEndpoints, withoutLost } from './lost-endpoints.ts';
import { aliasMark, tunnelMark } from './marks.ts';
import {
  type DesiredPeer,
  type Failure,
  type HeldLabels,
  type InterfaceAddress,
  type NetworkMap,
  type Options,
  onLinkRange,
  type Peer,
  type PeerId,
  type TunnelConfig,
} from './model.ts';
import { presharedKeyOf } from './network-secret.ts';
import { limitFor, type PathMtu } from './path-mtu.ts';
import { perObject } from './per-object.ts';
import { reachOutside } from './reach-outside.ts';
import type { Resolved } from './resolved.ts';
import { assignedRoutes } from './route-owner.ts';
import { type RouteReport, reportRefused, reportRoute } from './route-report.ts';
import type { Rule } from './rule.ts';
import type { Secret } from './secret.ts';
import type { Firewall } from './step.ts';
import { type Reach, reachPeers } from './topology.ts';

/** What a host is to be in one network, before anything of the host is looked at. */
export interface Intent {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly keyPair: KeyPair;
  /** Of which each pair of peers gets its preshared key; null for none. */
  readonly networkSecret: Secret | null;
  readonly options: Options;
  readonly resolved: Resolved;
  readonly failed: readonly Failure[];
  /** The network's label in the hosts file; null where that is not to name the peers. */
  readonly label: string | null;
  readonly forwarding: HostForwarding;
  /** The labels that the hosts file gave peers before. */
  readonly labels: readonly HeldLabels[];
  /** What the daemon measured of paths; null where it found no limit. */
  readonly pathMtu: PathMtu | null;
}

/** The whole state that a pass works towards. */
export interface Desired {
  readonly link: string;
  readonly alias: string;
  readonly keyPair: KeyPair;
  readonly config: TunnelConfig;
  /** Prefixes that lead into the interface beside the range of its own address. */
  readonly routes: readonly Prefix[];
  /** Interfaces of this host's later networks, whose routes to the same prefixes are taken over. */
  readonly later: readonly string[];
  /** The policy rules that a full tunnel needs; none without one. */
  readonly rules: readonly Rule[];
  readonly isConnector: boolean;
  /** The packet rules of a host that forwards; null for one that does not, where nothing that comes out of the tunnel goes on. */
  readonly firewall: Firewall | null;
  /** The other interfaces whose forwarding a connector needs. */
  readonly ingress: readonly Ingress[];
  /** Interfaces whose forwarding was turned on for this connector, and is not needed any more. */
  readonly unneeded: readonly string[];
  /** Forwarding as a whole, which an earlier version turned on, is turned off. */
  readonly revertsAll: boolean;
  /** Other settings of the kernel. */
  readonly sysctls: Readonly<Record<string, string>>;
  /** Our block in the hosts file; null for none. */
  readonly hosts: string | null;
  readonly report: readonly RouteReport[];
  /** Peers that do not answer directly, and the connector that their packets go through meanwhile. */
  readonly detours: readonly { readonly peer: Peer; readonly via: Peer }[];
  /** Why an endpoint is not used, by its peer. */
  readonly lostEndpoints: ReadonlyMap<PeerId, string>;
  /** The MTU that fits the underlay. */
  readonly fittedMtu: number;
  /** What was measured, where the MTU follows from it; null where it does not. */
  readonly pathMtu: PathMtu | null;
}

/** The mark on an interface that is ours. */
export function aliasOf(map: NetworkMap): string {
  // Of another service's ids, what an alias can hold.
  return `${aliasMark}${String(map.id ?? 'network').replace(/[^\w.:-]/g, '_')}`;
}

/** Works out what the host should be: who is reached how, without what the guard refuses. */
export function desire(intent: Intent, ground: Ground): Desired {
  const { link, self, keyPair, options, resolved, failed } = intent;
  const { map, inside } = withoutInside(intent.map);
  const rangeRefused = refuse(map.cidr, ground);
  // A range of one address is this host's own: the network's is not known.
  const takesRange = rangeRefused === null && lengthOf(map.cidr) < 32;
  const verdicts = judgeEndpoints({ map, self, options, resolved, takesRange }, ground);
  const topology = reachPeers({
    map: withoutLost(map, verdicts),
    self,
    acceptRoutes: options.acceptRoutes,
    failed,
    takesRange,
  });
  const reports = topology.routes.flatMap((route) =>
    reportRoute(route, { map, failed, trapped: verdicts.trapped }, ground),
  );
  const refused = new Set([
    ...reports.filter((report) => report.state === 'refused').map((report) => report.prefix),
    ...(takesRange ? [] : refuseAddresses(map, ground)),
  ]);
  const address: InterfaceAddress = { address: self.address, length: rangeRefused === null ? lengthOf(map.cidr) : 32 };
  const peers = topology.reaches.map((reach) => desirePeer(reach, refused, intent));
  const routes = findRoutes({ address, peers });
  const isFull = routes.some(isDefaultRoute);
  const { surroundings } = ground;
  const isConnector = self.type === 'connector';
  const served = assignedRoutes(map, self).filter((route) => familyOf(route) === familyOf(map.cidr));
  const ingresses = findIngresses(served, surroundings, intent.forwarding);
  const { ingress } = ingresses;
  const rules = isConnector
    ? forwardingRules({ map, self, options, detours: topology.detours, surroundings, ingress })
    : forwardsBeside(intent.forwarding)
      ? localRules(self)
      : null;
  const fittedMtu = fitMtu(surroundings.underlayMtu);
  const pathMtu = options.mtu === null ? limitFor(intent.pathMtu, surroundings, fittedMtu) : null;
  return {
    link,
    alias: aliasOf(map),
    keyPair,
    config: {
      privateKey: keyPair.privateKey,
      listenPort: options.listenPort,
      fwmark: isFull ? tunnelMark : null,
      mtu: options.mtu ?? pathMtu?.mtu ?? fittedMtu,
      address,
      peers,
    },
    routes,
    later: ground.later,
    rules: isFull ? tunnelRules(ground) : [],
    isConnector,
    firewall: rules && { link, rules },
    ...ingresses,
    sysctls: {
      ...(isConnector && { [sourceFilterKey(link)]: looseFilter }),
      ...(isFull && { [markedSourceKey]: '1' }),
    },
    hosts: intent.label === null ? null : renderBlock(link, map, intent.label, intent.labels),
    report: [...(rangeRefused === null ? [] : [reportRefused(map.cidr, rangeRefused)]), ...inside, ...reports],
    detours: topology.detours.flatMap((peer) => (topology.relay ? [{ peer, via: topology.relay }] : [])),
    lostEndpoints: verdicts.lost,
    fittedMtu,
    pathMtu,
  };
}

/** The same host with the tunnel of an earlier file; its policy rules are those of now. */
export function restore(desired: Desired, config: TunnelConfig): Desired {
  const routes = findRoutes(config).filter((prefix) => desired.rules.length > 0 || !isDefaultRoute(prefix));
  return { ...desired, config, routes };
}

/** What leads into the interface beside the range of its own address. */
function findRoutes({ address, peers }: Pick<TunnelConfig, 'address' | 'peers'>): readonly Prefix[] {
  const onLink = onLinkRange(address);
  return peers.flatMap((peer) => peer.allowedIps).filter((prefix) => !(onLink && covers(onLink, prefix)));
}

/** True of a host that forwards on its own account, as for containers, and can be given packet rules. */
function forwardsBeside({ sysctls, hasNft }: HostForwarding): boolean {
  return sysctls[allForwardingKey] === '1' && hasNft;
}

/** The map without routes that would give one peer's addresses to another, and what is said of those. */
function withoutInside(map: NetworkMap): { map: NetworkMap; inside: RouteReport[] } {
  const inside = map.routes.flatMap((prefix) => {
    const reason = refuseInside(prefix, map);
    return reason === null ? [] : [reportRefused(prefix, reason)];
  });
  if (inside.length === 0) return { map, inside };
  return { map: { ...map, routes: map.routes.filter((prefix) => refuseInside(prefix, map) === null) }, inside };
}

/**
 * The largest packet that fits through the tunnel: 80 bytes (IPv6, UDP and WireGuard headers, as wg-quick reckons)
 * below the underlay, no more than fits a 1,500-byte internet, no less than IPv6 needs (RFC 8200).
 */
function fitMtu(underlay: number | null): number {
  return Math.max(1280, Math.min(1420, (underlay ?? 1500) - 80));
}

function desirePeer(
  { peer, endpoint, allowedIps, keepalive }: Reach,
  refused: ReadonlySet<Prefix>,
  intent: Intent,
): DesiredPeer {
  return keepPeer(peer)({
    publicKey: peer.publicKey,
    presharedKey: sharePresharedKey(peer, intent),
    endpoint: reachOutside(endpoint, intent),
    allowedIps: allowedIps.filter((prefix) => !refused.has(prefix)),
    keepalive,
  });
}

/** A peer that is to be as it was to be before is the very object: of a large network little is compared and written anew. */
const keepPeer = perObject((_: Peer) => keepSame(sameDesiredPeer));

function sameDesiredPeer(one: DesiredPeer, other: DesiredPeer): boolean {
  return (
    one.publicKey === other.publicKey &&
    one.presharedKey?.reveal() === other.presharedKey?.reveal() &&
    sameEndpoint(one.endpoint, other.endpoint) &&
    sameList(one.allowedIps, other.allowedIps) &&
    one.keepalive === other.keepalive
  );
}

/** With a network secret its key stands in the place of one that the service gave, and so knows. */
function sharePresharedKey(peer: Peer, { networkSecret, map, keyPair }: Intent): Secret | null {
  if (networkSecret === null) return peer.given?.presharedKey ?? null;
  return presharedKeyOf(networkSecret, map.id, keyPair.publicKey, peer.publicKey);
}

/** Where the network's range as a whole is refused or not known, its addresses are judged one by one, so that the rest works. */
function refuseAddresses(map: NetworkMap, ground: Ground): Prefix[] {
  const given = map.peers.flatMap((peer) => peer.given?.allowedIps ?? []);
  const own = map.peers.map((peer) => hostPrefix(peer.address));
  return [...own, ...given].filter((prefix) => refuse(prefix, ground) !== null);
}
