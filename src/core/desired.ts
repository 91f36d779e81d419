import { type Address, covers, hostPrefix, lengthOf, type Prefix } from './cidr.ts';
import { type Endpoint, isLiteral, type SocketEndpoint, sameEndpoint, unusableAddress } from './endpoint.ts';
import { forwardingRules } from './forwarding-rules.ts';
import { isDefaultRoute, markedSourceKey, tunnelRules } from './full-tunnel.ts';
import { type Ground, refuse, refuseInside } from './guard.ts';
import { renderBlock } from './hosts-block.ts';
import { keepSame, sameList } from './keep-same.ts';
import type { KeyPair } from './keys.ts';
import { looseFilter, sourceFilterKey } from './link-sysctl.ts';
import { aliasMark, tunnelMark } from './marks.ts';
import type {
  DesiredPeer,
  Failure,
  HeldLabels,
  InterfaceAddress,
  NetworkMap,
  Options,
  Peer,
  TunnelConfig,
} from './model.ts';
import { presharedKeyOf } from './network-secret.ts';
import { perObject } from './per-object.ts';
import type { Resolved } from './resolved.ts';
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
  /** The labels that the hosts file gave peers before. */
  readonly labels: readonly HeldLabels[];
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
  readonly firewall: Firewall | null;
  readonly sysctls: Readonly<Record<string, string>>;
  /** Our block in the hosts file; null for none. */
  readonly hosts: string | null;
  readonly report: readonly RouteReport[];
  /** Peers that do not answer directly, and the connector that their packets go through meanwhile. */
  readonly detours: readonly { readonly peer: Peer; readonly via: Peer }[];
}

/** IPv4 forwarding between interfaces; a connector is nothing without it. */
export const forwardingKey = 'net.ipv4.ip_forward';

/** The mark on an interface that is ours. */
export function aliasOf(map: NetworkMap): string {
  return `${aliasMark}${map.id ?? 'network'}`;
}

/** Works out what the host should be: who is reached how, without what the guard refuses. */
export function desire(intent: Intent, ground: Ground): Desired {
  const { link, self, keyPair, options } = intent;
  const { map, inside } = withoutInside(intent.map);
  const rangeRefused = refuse(map.cidr, ground);
  // A range of one address is this host's own: the network's is not known.
  const takesRange = rangeRefused === null && lengthOf(map.cidr) < 32;
  const topology = reachPeers({
    map,
    self,
    acceptRoutes: options.acceptRoutes,
    failed: intent.failed,
    takesRange,
  });
  const reports = topology.routes.flatMap((route) => reportRoute(route, intent, ground));
  const refused = new Set([
    ...reports.filter((report) => report.state === 'refused').map((report) => report.prefix),
    ...(takesRange ? [] : refuseAddresses(map, ground)),
  ]);
  const address: InterfaceAddress = { address: self.address, length: rangeRefused === null ? lengthOf(map.cidr) : 32 };
  const peers = topology.reaches.map((reach) => desirePeer(reach, refused, intent));
  const onLink = address.length === 32 ? null : map.cidr;
  const routes = peers.flatMap((peer) => peer.allowedIps).filter((prefix) => !(onLink && covers(onLink, prefix)));
  const isFull = routes.some(isDefaultRoute);
  const forwards = self.type === 'connector';
  return {
    link,
    alias: aliasOf(map),
    keyPair,
    config: {
      privateKey: keyPair.privateKey,
      listenPort: options.listenPort,
      fwmark: isFull ? tunnelMark : null,
      mtu: options.mtu ?? fitMtu(ground.surroundings.underlayMtu),
      address,
      peers,
    },
    routes,
    later: ground.later,
    rules: isFull ? tunnelRules(ground) : [],
    firewall: forwards ? { link, rules: forwardingRules({ map, self, options, detours: topology.detours }) } : null,
    sysctls: {
      ...(forwards && { [sourceFilterKey(link)]: looseFilter, [forwardingKey]: '1' }),
      ...(isFull && { [markedSourceKey]: '1' }),
    },
    hosts: intent.label === null ? null : renderBlock(link, map, intent.label, intent.labels),
    report: [...(rangeRefused === null ? [] : [reportRefused(map.cidr, rangeRefused)]), ...inside, ...reports],
    detours: topology.detours.flatMap((peer) => (topology.relay ? [{ peer, via: topology.relay }] : [])),
  };
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
 * Where a peer is reached outside the tunnel; null where that is not known, or no peer can listen there: an address of a peer of the
 * same network is in the tunnel, whose packets would go into it again and again.
 */
export function reachOutside(endpoint: Endpoint | null, { map, resolved }: Pick<Intent, 'map' | 'resolved'>) {
  const located = locate(endpoint, resolved);
  if (located === null || unusableAddress(located.host) !== null) return null;
  // Where the range is not known, so is not whether the address is in the tunnel.
  return lengthOf(map.cidr) < 32 && addressesOf(map).has(located.host) ? null : located;
}

const addressesOf = perObject(
  ({ peers }: NetworkMap): ReadonlySet<Address> => new Set(peers.map((peer) => peer.address)),
);

/** An endpoint at which a packet can be sent without asking a resolver; null when its name never resolved. */
function locate(endpoint: Endpoint | null, resolved: Resolved): SocketEndpoint | null {
  if (endpoint === null || isLiteral(endpoint)) return endpoint;
  const [host] = resolved[endpoint.host] ?? [];
  return host === undefined ? null : { host, port: endpoint.port };
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
