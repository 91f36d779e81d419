import type { KeyPair, PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { ServiceSocket } from '../forward/access-filter.ts';
import type { HostForwarding, Ingress } from '../forward/ingress.ts';
import type { Ipv6Exceptions } from '../forward/ipv6-outside.ts';
import { isIpv6Rule } from '../forward/ipv6-rules.ts';
import type { KeptSession } from '../forward/kept-sessions.ts';
import type { Firewall } from '../forward/packet-rule.ts';
import type { PathMtu } from '../health/path-mtu.ts';
import type { ResolverSettings, SshClient } from '../host-state/actual.ts';
import { aliasMark } from '../host-state/marks.ts';
import type { Rule } from '../host-state/policy-rule.ts';
import type { NetworkMap, Peer, PeerFailure, PeerId, RouteDns } from '../map/model.ts';
import type { Options } from '../map/options.ts';
import type { PeerLabels } from '../names/hosts-label.ts';
import type { Resolved } from '../names/resolved-names.ts';
import type { DomainReport, DomainServers, ForwardedDomains } from '../names/split-dns.ts';
import { type Address, covers, type InterfaceAddress, isDefaultRoute, onLinkRange, type Prefix } from '../net/cidr.ts';
import { isForProbes } from '../paths/probe-address.ts';
import type { TunnelRoutes } from '../routing/place-route.ts';
import type { RouteReport } from '../routing/route-report.ts';
import type { StrictExceptions } from '../routing/strict-rules.ts';
import type { TunnelConfig } from '../wg-quick/parse.ts';

/** The inputs for a host's desired state in a network, other than observations of the host. */
export interface DesiredInputs {
  readonly link: string;
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly keyPair: KeyPair;
  /** The secret from which each pair of peers derives its preshared key; null for none. */
  readonly networkSecret: Secret | null;
  readonly options: Options;
  readonly resolved: Resolved;
  /**
   * Endpoint addresses without a route outside the tunnel. The next address of the endpoint's name
   * is used.
   */
  readonly unreachable: readonly Address[];
  readonly failed: readonly PeerFailure[];
  /** The network's label in the names of its peers. */
  readonly label: string;
  readonly forwarding: HostForwarding;
  /** The labels that the hosts file gave peers before. */
  readonly labels: readonly PeerLabels[];
  /** The limit that the daemon measured on paths; null without a limit. */
  readonly pathMtu: PathMtu | null;
  /** The routing table for accepted routes; null if they are in the main table. */
  readonly routeTable: string | null;
  /** The addresses that a strict tunnel leaves outside; null if the tunnel is not strict. */
  readonly strict: StrictExceptions | null;
  /** SSH sessions to this host. They are read only if packet rules are to be loaded. */
  readonly sessions: readonly SshClient[];
  /** Listed peers that have expired; absent for none. */
  readonly expired?: readonly PeerId[];
  /** When the map's validity ends: milliseconds since 1970 by the service's clock, if ever. */
  readonly mapEnd?: number | null;
  /** The addresses and ports at which this host reaches the control plane; absent for none. */
  readonly services?: readonly ServiceSocket[];
  readonly names: NameConstraints;
  /** Peers that this host reaches over a direct path; absent if the service arranges none. */
  readonly paths?: readonly PeerId[];
}

/** The domains behind routes, and what they must not take away from the host. */
export interface NameConstraints {
  readonly entries: readonly RouteDns[];
  /** Their domains that are public suffixes, such as `co.uk`. */
  readonly suffixes: readonly string[];
  /** Names that must resolve as before, those of the other networks of this host included. */
  readonly needed: readonly string[];
  /** The interfaces of the other networks of this host. */
  readonly networks: readonly string[];
  /** As observed; undefined if not requested. */
  readonly resolver: ResolverSettings | null | undefined;
  /** True if the DNS settings of the interface are ours. */
  readonly isOwn: boolean;
  /** Settings with which the names `lost` did not resolve, a short time ago; null for none. */
  readonly refused: (DomainServers & { readonly lost: readonly string[]; readonly failure?: string }) | null;
}

/** For a host that resolves no names. */
export const noNames: NameConstraints = {
  ...{ entries: [], suffixes: [], needed: [], networks: [] },
  ...{ resolver: undefined, isOwn: false, refused: null },
};

/** The complete state of a network on this host, which a pass establishes. */
export interface Desired extends TunnelRoutes {
  readonly alias: string;
  readonly keyPair: KeyPair;
  readonly config: TunnelConfig;
  /**
   * The tunnel of the wg-quick file: without direct paths, which are no longer there after
   * `wg-quick up`.
   */
  readonly savedConfig: TunnelConfig;
  /** The link-local address for probes; null if this host has no direct paths or no IPv6. */
  readonly probeAddress: InterfaceAddress | null;
  /** The peers that may be under trial. A plan leaves those in WireGuard's table alone. */
  readonly triable: ReadonlySet<PublicKey>;
  /** The policy rules of a full tunnel; empty without one. */
  readonly rules: readonly Rule[];
  readonly isConnector: boolean;
  /** True if packets of other hosts pass through the interface. Otherwise it does not forward. */
  readonly forwards: boolean;
  /** The packet rules; null on a host that cannot load any. */
  readonly firewall: Firewall | null;
  /** What happens to IPv6 outside a full tunnel; null without a full tunnel. */
  readonly ipv6: Ipv6Outside | null;
  /** SSH sessions that the packet rules keep, and would refuse if they were new. */
  readonly keptSessions: readonly KeptSession[];
  /** The other interfaces whose forwarding a connector needs. */
  readonly ingress: readonly Ingress[];
  /** Interfaces whose forwarding was turned on for this connector and is no longer needed. */
  readonly unneeded: readonly string[];
  /** True if forwarding on all interfaces, turned on by an earlier version, must be turned off. */
  readonly revertsAll: boolean;
  /** Kernel settings other than forwarding. */
  readonly sysctls: Readonly<Record<string, string>>;
  /** Our block in the hosts file; null for none. */
  readonly hosts: string | null;
  /** The domains that this host resolves through the tunnel; null for none. */
  readonly dns: DomainServers | null;
  /** True if the present DNS settings of the interface are ours. */
  readonly ownsDns: boolean;
  /** Present if our files for the resolver stay as they are, because it must not be restarted. */
  readonly keepsDnsFiles?: true;
  /** What the daemon of this host serves; null if nothing would use it. */
  readonly served: ServedNetwork | null;
  readonly domains: readonly DomainReport[];
  readonly report: readonly RouteReport[];
  /** The connector that relays to peers that are not reached directly; null if none is needed. */
  readonly relay: Peer | null;
  /** Peers that do not answer directly, and the connector that relays their packets meanwhile. */
  readonly relayedPeers: readonly { readonly peer: Peer; readonly via: Peer }[];
  /** Why an endpoint is not used, by its peer. */
  readonly lostEndpoints: ReadonlyMap<PeerId, string>;
  /** The addresses of names, the preferred address first. */
  readonly resolved: Resolved;
  /** Addresses that are used only if no other exists: without a route, or inside the tunnel. */
  readonly avoided: ReadonlySet<Address>;
  /** The MTU that fits the underlay. */
  readonly fittedMtu: number;
  /** The measurement that determines the MTU; null if none does. */
  readonly pathMtu: PathMtu | null;
}

/** The names of a network that the daemon serves. */
export interface ServedNetwork {
  /** An address of this host alone. */
  readonly address: Address;
  readonly label: string;
  readonly forwarded: readonly ForwardedDomains[];
  /** The DNS settings of the interface once the daemon ends. Absent for files, which stay. */
  readonly afterwards?: DomainServers | null;
}

/** How a host with a full tunnel treats IPv6. A full tunnel carries only IPv4. */
export interface Ipv6Outside {
  /** The IPv6 that is not rejected; null if none is rejected, as without nft. */
  readonly exceptions: Ipv6Exceptions | null;
  /** True if the operator allows all IPv6 outside. */
  readonly isAllowed: boolean;
  /** True if the kernel has IPv6. */
  readonly isThere: boolean;
}

/** Returns the state without the rules that reject IPv6 outside a full tunnel. */
export function withoutIpv6Rejection(desired: Desired): Desired {
  const { firewall, ipv6 } = desired;
  if (firewall === null || ipv6 === null) return desired;
  const rules = firewall.rules.filter((rule) => !isIpv6Rule(rule));
  return { ...desired, firewall: { ...firewall, rules }, ipv6: { ...ipv6, exceptions: null } };
}

/** Returns the state of a closed network without packet rules: handshakes, and nothing else. */
export function withoutUnfiltered(desired: Desired): Desired {
  if (desired.firewall?.access === undefined) return desired;
  const peers = desired.config.peers.map((peer) => ({ ...peer, allowedIps: [] }));
  return { ...desired, config: { ...desired.config, peers }, triable: new Set() };
}

export function aliasOf(map: NetworkMap): string {
  // The id of another service may have characters that an alias cannot contain.
  return `${aliasMark}${String(map.id ?? 'network').replace(/[^\w.:-]/g, '_')}`;
}

/**
 * Returns the state with the routes of the previous wg-quick file: wg-quick may have added them.
 */
export function withFormerRoutes(desired: Desired, last: TunnelConfig | null): Desired {
  if (last === null) return desired;
  const wanted = new Set(desired.routes);
  return { ...desired, previous: findRoutes(last).filter((prefix) => !wanted.has(prefix)) };
}

/** Returns the state with the tunnel of an earlier file and the present policy rules. */
export function restoreConfig(desired: Desired, config: TunnelConfig): Desired {
  const routes = findRoutes(config).filter((prefix) => desired.rules.length > 0 || !isDefaultRoute(prefix));
  return { ...desired, config, routes };
}

/** Returns the prefixes that lead into the interface, except the range of its address. */
export function findRoutes({ address, peers }: Pick<TunnelConfig, 'address' | 'peers'>): readonly Prefix[] {
  const onLink = onLinkRange(address);
  return peers
    .flatMap((peer) => peer.allowedIps)
    .filter((prefix) => !(onLink && covers(onLink, prefix)) && !isForProbes(prefix));
}
