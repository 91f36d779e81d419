import { covers, hostPrefix, lengthOf, type Prefix } from './cidr.ts';
import { type Endpoint, isLiteral, type SocketEndpoint, unusableAddress } from './endpoint.ts';
import { isDefaultRoute, markedSourceKey, tunnelRules } from './full-tunnel.ts';
import { type Ground, refuse } from './guard.ts';
import type { KeyPair } from './keys.ts';
import { aliasMark, tunnelMark } from './marks.ts';
import type { DesiredPeer, InterfaceAddress, NetworkMap, Options, Peer, TunnelConfig } from './model.ts';
import type { Resolved } from './resolved.ts';
import type { Rule } from './rule.ts';
import type { Firewall, FirewallRule } from './step.ts';
import { type Reach, type RouteOwner, reachPeers, servedRoutes } from './topology.ts';

/** What a host is to be in one network, before anything of the host is looked at. */
export interface Intent {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly keyPair: KeyPair;
  readonly options: Options;
  readonly resolved: Resolved;
}

/** The whole state that a pass works towards. */
export interface Desired {
  readonly link: string;
  readonly alias: string;
  readonly keyPair: KeyPair;
  readonly config: TunnelConfig;
  /** Prefixes that lead into the interface beside the range of its own address. */
  readonly routes: readonly Prefix[];
  /** The policy rules that a full tunnel needs; none without one. */
  readonly rules: readonly Rule[];
  readonly firewall: Firewall | null;
  readonly sysctls: Readonly<Record<string, string>>;
  readonly report: readonly RouteReport[];
}

/** What became of a route of the network on this host. */
export interface RouteReport {
  readonly prefix: Prefix;
  readonly via: string | null;
  readonly state: 'taken' | 'served' | 'refused' | 'missing';
  /** Why it is so; of a route that is taken, what does not go by it. */
  readonly reason: string | null;
}

/** IPv4 forwarding between interfaces; a connector is nothing without it. */
export const forwardingKey = 'net.ipv4.ip_forward';

/** The mark on an interface that is ours. */
export function aliasOf(map: NetworkMap): string {
  return `${aliasMark}${map.id}`;
}

/** Works out what the host should be: who is reached how, without what the guard refuses. */
export function desire(intent: Intent, ground: Ground): Desired {
  const { link, map, self, keyPair, options } = intent;
  const rangeRefused = refuse(map.cidr, ground);
  const topology = reachPeers({
    map,
    self,
    acceptRoutes: options.acceptRoutes,
    failed: new Set(),
    takesRange: rangeRefused === null,
  });
  const reports = topology.routes.map((route) => reportRoute(route, ground));
  const refused = new Set([
    ...reports.filter((report) => report.state === 'refused').map((report) => report.prefix),
    ...(rangeRefused === null ? [] : refuseAddresses(map, ground)),
  ]);
  const address: InterfaceAddress = { address: self.address, length: rangeRefused === null ? lengthOf(map.cidr) : 32 };
  const peers = topology.reaches.map((reach) => desirePeer(reach, refused, intent));
  const onLink = address.length === 32 ? null : map.cidr;
  const routes = peers.flatMap((peer) => peer.allowedIps).filter((prefix) => !(onLink && covers(onLink, prefix)));
  const isFull = routes.some(isDefaultRoute);
  const served = servedRoutes(map, self);
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
    rules: isFull ? tunnelRules(ground) : [],
    firewall: self.type === 'connector' ? { link, rules: forwardingRules(map, served, options) } : null,
    sysctls: {
      ...(self.type === 'connector' && { [forwardingKey]: '1' }),
      ...(isFull && { [markedSourceKey]: '1' }),
    },
    report: rangeRefused === null ? reports : [reportRange(map, rangeRefused), ...reports],
  };
}

/** An endpoint at which a packet can be sent without asking a resolver; null when its name never resolved. */
export function locate(endpoint: Endpoint | null, resolved: Resolved): SocketEndpoint | null {
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
  const located = locate(endpoint, intent.resolved);
  return {
    publicKey: peer.publicKey,
    presharedKey: null,
    endpoint: located && unusableAddress(located.host) === null ? located : null,
    allowedIps: allowedIps.filter((prefix) => !refused.has(prefix)),
    keepalive,
  };
}

/** Where the network's range as a whole is refused, its addresses are judged one by one, so that the rest works. */
function refuseAddresses(map: NetworkMap, ground: Ground): Prefix[] {
  return map.peers.map((peer) => hostPrefix(peer.address)).filter((address) => refuse(address, ground) !== null);
}

function reportRoute({ prefix, via, hop, note }: RouteOwner, ground: Ground): RouteReport {
  const name = via?.name ?? null;
  if (note === 'served here') return { prefix, via: null, state: 'served', reason: null };
  if (note === 'not accepted') return { prefix, via: name, state: 'refused', reason: 'not accepted' };
  if (hop === null) return { prefix, via: name, state: 'missing', reason: note };
  const reason = refuse(prefix, ground);
  if (reason !== null) return { prefix, via: name, state: 'refused', reason };
  return { prefix, via: name, state: 'taken', reason: isDefaultRoute(prefix) ? besideTunnel : null };
}

/** Said of every full tunnel: whoever wants one may think that nothing goes beside it. */
const besideTunnel = 'IPv6, and questions to the resolver, go outside the tunnel';

function reportRange(map: NetworkMap, reason: string): RouteReport {
  return { prefix: map.cidr, via: null, state: 'refused', reason };
}

function forwardingRules(map: NetworkMap, served: readonly Prefix[], options: Options): FirewallRule[] {
  const masquerade = served.map((to) => ({ rule: 'masquerade', from: map.cidr, to }) as const);
  return [{ rule: 'clamp-mss' }, ...(options.masquerade ? masquerade : [])];
}
