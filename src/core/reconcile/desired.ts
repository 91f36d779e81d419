import type { KeyPair } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { HostForwarding, Ingress } from '../forward/ingress.ts';
import type { Ipv6Exceptions } from '../forward/ipv6-outside.ts';
import { isIpv6Rule } from '../forward/ipv6-rules.ts';
import type { KeptSession } from '../forward/kept-sessions.ts';
import type { Firewall } from '../forward/packet-rule.ts';
import type { PathMtu } from '../health/path-mtu.ts';
import type { SshClient } from '../host-state/actual.ts';
import { aliasMark } from '../host-state/marks.ts';
import type { Rule } from '../host-state/policy-rule.ts';
import type { NetworkMap, Peer, PeerFailure, PeerId } from '../map/model.ts';
import type { Options } from '../map/options.ts';
import type { PeerLabels } from '../names/hosts-label.ts';
import type { Resolved } from '../names/resolved-names.ts';
import { type Address, covers, isDefaultRoute, type Prefix } from '../net/cidr.ts';
import { onLinkRange } from '../net/interface-address.ts';
import type { TunnelRoutes } from '../routing/place-route.ts';
import type { RouteReport } from '../routing/route-report.ts';
import type { StrictExceptions } from '../routing/strict-rules.ts';
import type { TunnelConfig } from '../wg-quick/tunnel-config.ts';

/** What a host is to be in one network, before anything of the host is looked at. */
export interface DesiredInputs {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly keyPair: KeyPair;
  /** Of which each pair of peers gets its preshared key; null for none. */
  readonly networkSecret: Secret | null;
  readonly options: Options;
  readonly resolved: Resolved;
  /** Addresses to which this host has no route outside the tunnel: another address of the name is used. */
  readonly unreachable: readonly Address[];
  readonly failed: readonly PeerFailure[];
  /** The network's label in the hosts file; null where that is not to name the peers. */
  readonly label: string | null;
  readonly forwarding: HostForwarding;
  /** The labels that the hosts file gave peers before. */
  readonly labels: readonly PeerLabels[];
  /** What the daemon measured of paths; null where it found no limit. */
  readonly pathMtu: PathMtu | null;
  /** The routing table for accepted routes; null where they are in the main table. */
  readonly routeTable: string | null;
  /** What a strict tunnel leaves to the rest of the host; null for one that is not strict. */
  readonly strict: StrictExceptions | null;
  /** SSH sessions to this host; read only where packet rules are to be loaded. */
  readonly sessions: readonly SshClient[];
  /** Listed peers that have expired; absent for none. */
  readonly expired?: readonly PeerId[];
  /** Until when the map is valid, in milliseconds since 1970 by the clock of the service; null or absent for good. */
  readonly mapEnd?: number | null;
}

/** The whole state that a pass works towards. */
export interface Desired extends TunnelRoutes {
  readonly alias: string;
  readonly keyPair: KeyPair;
  readonly config: TunnelConfig;
  /** The policy rules that a full tunnel needs; none without one. */
  readonly rules: readonly Rule[];
  readonly isConnector: boolean;
  /** Whether packets of others pass through the interface; else it does not forward. */
  readonly forwards: boolean;
  /** The packet rules; null on a host that cannot be given any. */
  readonly firewall: Firewall | null;
  /** IPv6 outside a full tunnel; null without one. */
  readonly ipv6: Ipv6Outside | null;
  /** SSH sessions that the packet rules let go on, and would refuse if they were new. */
  readonly keptSessions: readonly KeptSession[];
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
  readonly relayedPeers: readonly { readonly peer: Peer; readonly via: Peer }[];
  /** Why an endpoint is not used, by its peer. */
  readonly lostEndpoints: ReadonlyMap<PeerId, string>;
  /** The addresses of names, the one to use first. */
  readonly resolved: Resolved;
  /** Addresses of names that are not used while there is another: without a route, or inside the tunnel. */
  readonly avoided: ReadonlySet<Address>;
  /** The MTU that fits the underlay. */
  readonly fittedMtu: number;
  /** What was measured, where the MTU follows from it; null where it does not. */
  readonly pathMtu: PathMtu | null;
}

/** What becomes of IPv6 on a host with a full tunnel, which is one of IPv4. */
export interface Ipv6Outside {
  /** What is not rejected; null where nothing is, as without nft. */
  readonly exceptions: Ipv6Exceptions | null;
  /** Whether a person lets all of it out. */
  readonly isAllowed: boolean;
  /** Whether the kernel has IPv6. */
  readonly isThere: boolean;
}

/** The same host without the rules that reject IPv6 outside a full tunnel. */
export function withoutIpv6Rejection(desired: Desired): Desired {
  const { firewall, ipv6 } = desired;
  if (firewall === null || ipv6 === null) return desired;
  const rules = firewall.rules.filter((rule) => !isIpv6Rule(rule));
  return { ...desired, firewall: { ...firewall, rules }, ipv6: { ...ipv6, exceptions: null } };
}

/** The mark on an interface that is ours. */
export function aliasOf(map: NetworkMap): string {
  // Of another service's ids, what an alias can hold.
  return `${aliasMark}${String(map.id ?? 'network').replace(/[^\w.:-]/g, '_')}`;
}

/** The same host, where wg-quick may have made the routes of the last file. */
export function withFormerRoutes(desired: Desired, last: TunnelConfig | null): Desired {
  if (last === null) return desired;
  const wanted = new Set(desired.routes);
  return { ...desired, previous: findRoutes(last).filter((prefix) => !wanted.has(prefix)) };
}

/** The same host with the tunnel of an earlier file; its policy rules are those of now. */
export function restoreConfig(desired: Desired, config: TunnelConfig): Desired {
  const routes = findRoutes(config).filter((prefix) => desired.rules.length > 0 || !isDefaultRoute(prefix));
  return { ...desired, config, routes };
}

/** What leads into the interface in addition to the range of its own address. */
export function findRoutes({ address, peers }: Pick<TunnelConfig, 'address' | 'peers'>): readonly Prefix[] {
  const onLink = onLinkRange(address);
  return peers.flatMap((peer) => peer.allowedIps).filter((prefix) => !(onLink && covers(onLink, prefix)));
}
