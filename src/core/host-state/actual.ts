import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Address, InterfaceAddress, Prefix } from '../net/cidr.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import type { Rule } from './policy-rule.ts';

/** The host's state, as a pass observes it. */
export interface Actual {
  /** Our interface, or any interface of its name; null without one. */
  readonly link: Link | null;
  /** WireGuard's own table; null without the link, or if it is no WireGuard interface. */
  readonly device: Device | null;
  /** Routes of all tables that lead into our interface, without those that the kernel added. */
  readonly routes: readonly Route[];
  /** The ranges of the interface's addresses that have a route into it, which the kernel adds. */
  readonly onLink: readonly Prefix[];
  /** Our `throw` routes in all tables of accepted routes; absent if the platform has none. */
  readonly throwRoutes?: readonly ThrowRoute[];
  /** The IPv4 policy rules of the host, without those that the kernel added. */
  readonly rules: readonly Rule[];
  /** `chain comment` of each rule, or unreadable part, of our nft table; null without the table. */
  readonly firewall: readonly string[] | null;
  /** Seconds that elements of our sets have left, by `set element`; absent without timeouts. */
  readonly timeouts?: Readonly<Record<string, number>>;
  /** Values of the sysctl keys that cpn uses, as the kernel prints them. */
  readonly sysctls: Readonly<Record<string, string>>;
  /** True if the sysctl keys cannot be written, as in most containers. */
  readonly isSealed?: boolean;
  /** The hosts file; null if it was not requested. */
  readonly hosts: HostsFile | null;
  /** Null if no resolver of this host has servers for single domains; absent if not requested. */
  readonly dns?: ResolverSettings | null;
  /** Our files for resolvers of {@link dropInPrograms}: text by path. Absent if not requested. */
  readonly dnsFiles?: Readonly<Record<string, string>>;
  /** True if routes have neither a table nor a metric. */
  readonly isPlain?: boolean;
  /** Why only WireGuard's table could be read; links, routes, rules and `underlay` are empty. */
  readonly unread?: string;
  readonly underlay: Underlay;
}

/** The hosts file, as far as one network needs it. */
export interface HostsFile {
  /** Our block in it; null without one. */
  readonly block: string | null;
  /** Why our block cannot be changed, and how to fix it; null if it can be changed. */
  readonly trouble: string | null;
}

/** The resolver of this host, if it has DNS servers for single domains. */
export type ResolverSettings = LinkResolver | FileResolver;

/** The DNS servers of domains. */
export interface OwnDns {
  /** Addresses, with `:PORT` or `#NAME` where those are set. */
  readonly servers: readonly string[];
  /** A routing domain has the prefix `~`, a search domain has none (systemd.network(5)). */
  readonly domains: readonly string[];
}

interface KnownDomains {
  /** The domains of other interfaces. */
  readonly others: readonly OtherDomain[];
  /** True if a system user's program serves names at our address: see {@link namesPort}. */
  readonly isServing: boolean;
  /** Where another program holds the daemon's port, by the daemon's notes; absent if none does. */
  readonly taken?: Address;
}

/** Has one list of DNS servers for each interface. */
export interface LinkResolver extends KnownDomains {
  readonly program: 'systemd-resolved';
  /** Those of our interface; null without any. */
  readonly own: LinkDnsSettings | null;
}

/** Reads files with DNS servers for each domain. */
export interface FileResolver extends KnownDomains {
  readonly program: DropInProgram;
  /** What our files in the folder set; null without any. */
  readonly own: OwnDns | null;
  readonly folder: string;
  /** True if one of our files changed less than a minute ago. */
  readonly isRecent: boolean;
  /** Why our file cannot be changed, and how to fix it; null if it can be changed. */
  readonly trouble: string | null;
  /** Why the program must not be restarted: its settings changed since it started. */
  readonly unstartable?: string;
}

/** `NetworkManager` stands for its own dnsmasq. */
export const dropInPrograms = ['dnsmasq', 'NetworkManager', 'unbound', 'macOS'] as const;
export type DropInProgram = (typeof dropInPrograms)[number];
export type LinuxProgram = Exclude<DropInProgram, 'macOS'>;

/** A domain whose names the resolver sends to an interface. */
export interface OtherDomain {
  readonly domain: string;
  /** Null if the domain is of the resolver's own settings. */
  readonly link: string | null;
  /** Set for a search domain, such as one from a DHCP server. */
  readonly isSearch?: true;
}

export interface LinkDnsSettings extends OwnDns {
  /** False if names outside the domains never go to these servers. */
  readonly isDefaultRoute: boolean;
  readonly dnssec: string;
  readonly dnsOverTls: string;
}

export interface Link {
  readonly name: string;
  readonly mtu: number;
  readonly up: boolean;
  /** `ip link … alias`: our mark on an interface that we created. */
  readonly alias: string | null;
  readonly addresses: readonly InterfaceAddress[];
  /** The VRF that it belongs to. Its packets also arrive by the VRF. */
  readonly vrf?: string;
}

export interface Device {
  /** Null while no private key is set. */
  readonly publicKey: PublicKey | null;
  readonly listenPort: number;
  /** The mark on packets that WireGuard itself sends; null if off. */
  readonly fwmark: number | null;
  readonly peers: readonly ActualPeer[];
}

export interface ActualPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly endpoint: SocketEndpoint | null;
  readonly allowedIps: readonly Prefix[];
  /** Seconds, or null if off. */
  readonly keepalive: number | null;
  /** Seconds since the epoch by the host's wall clock; null before the first handshake. */
  readonly latestHandshake: number | null;
  readonly rxBytes: number;
  readonly txBytes: number;
}

export interface Route {
  readonly prefix: Prefix;
  /** The routing table: `main` or a number. */
  readonly table: string;
  /** The program that added it, as iproute2 prints it: a name or a number. */
  readonly protocol: string;
  /** Of two routes to one prefix, the lower metric wins. Null if the platform reports no metric. */
  readonly metric: number | null;
  /** The type of service of the packets that use the route, if it is limited to one. */
  readonly tos?: string;
  /** How packets differ from those of a plain route into our interface, in ip-route(8) terms. */
  readonly deviation?: string;
  /** Set if another route to the same prefix in its table takes precedence. */
  readonly isOutdone?: true;
}

/**
 * Our route of type `throw` (ip-route(8)): a lookup that ends at it continues with the next policy
 * rule. It belongs to no interface, and outlives the tunnel.
 */
export interface ThrowRoute {
  readonly prefix: Prefix;
  readonly table: string;
}

/** The source of an SSH session to this host. */
export interface SshClient {
  readonly address: Address;
  /** This host's address in the session; null if unknown. */
  readonly local: Address | null;
}

/** An established TCP connection of this host, from its client to its server. */
export interface TcpConnection {
  readonly from: Address;
  readonly to: Address;
  /** The server's port. */
  readonly port: number;
}

/** The host's network outside the tunnel, which the tunnel must not cut off. */
export interface Underlay {
  /** The host's addresses outside tunnels, without loopback, link-local IPv6 or our interfaces. */
  readonly addresses: readonly Address[];
  /** Subnets that this host is in, except those of our own interface. */
  readonly connected: readonly { readonly prefix: Prefix; readonly link: string }[];
  /** Other programs' routes by other links: the main table without default or kernel routes. */
  readonly routed: readonly RoutedPrefix[];
  /** Our other interfaces. Absent if the platform does not report them. */
  readonly tunnels?: readonly string[];
  /** Prefixes, or the default route, that the main table refuses; absent if not reported. */
  readonly refusing?: readonly Prefix[];
  /**
   * The prefixes that the kernel routes by interfaces other than ours: the main table, with the
   * kernel's own routes, without default routes. Undefined if the platform does not report them.
   */
  readonly reached?: readonly { readonly prefix: Prefix; readonly link: string }[];
  /**
   * True if the main table is too large to read. The three lists above then have the kernel's
   * lookups for the relevant prefixes, and the routes that no routing daemon added.
   */
  readonly isSampled?: boolean;
  /**
   * What the kernel does with packets from the tunnel to the prefixes that this host serves. A
   * prefix is absent if not queried, if forwarding is off, or if the addresses are this host's.
   */
  readonly forwarded?: Readonly<Record<Prefix, ForwardedRoute>>;
  /** How packets to the control plane or its proxy leave: link, gateway and source, if reported. */
  readonly paths?: Readonly<Record<Address, string>>;
  readonly gateways: readonly Address[];
  /** The interfaces of the IPv4 default routes. */
  readonly uplinks: readonly string[];
  /** The interfaces of the IPv6 default routes. Absent if the platform does not report them. */
  readonly uplinks6?: readonly string[];
  /** All interfaces except loopback and our own. */
  readonly links: readonly HostLink[];
  /** The resolvers of resolv.conf(5), and those in the settings of a local stub. */
  readonly resolvers: readonly Address[];
  /** The local stubs among them; absent without any, or if the platform does not report them. */
  readonly stubs?: readonly ResolverStub[];
  /** The smallest MTU of the links with a default route; null without a default route. */
  readonly underlayMtu: number | null;
}

/** A route of another program. */
export interface RoutedPrefix {
  readonly prefix: Prefix;
  readonly link: string;
  readonly metric?: number;
  /** Absent if the destination is on the link, or if the platform does not report it. */
  readonly gateway?: Address;
  /** The program that added it, as iproute2 prints it. */
  readonly protocol?: string;
}

/** The path of packets from the tunnel to a served prefix. */
export interface ForwardedRoute {
  /** The interfaces, other than the tunnel, by which they leave. */
  readonly links: readonly string[];
  /** Why no packet leaves; null if any does. */
  readonly why: string | null;
}

/** A forwarding resolver in resolv.conf(5), at a loopback address or another of this host. */
export interface ResolverStub {
  readonly address: Address;
  /** True if a program listens at the address. */
  readonly isListening: boolean;
  /** The listening program's user, unless a system user. Such a stub's servers do not count. */
  readonly stranger?: number;
  /** The listening program; null if it cannot be determined. */
  readonly program: string | null;
  /** True if its settings were read, and name all servers that it queries. */
  readonly isStated: boolean;
  /** The servers in its settings. */
  readonly stated: readonly Address[];
  /** The servers to which it now has a socket. */
  readonly observed: readonly Address[];
  /** The servers to which it has a socket with the address of a tunnel. */
  readonly tunnelled?: readonly Address[];
}

export interface HostLink {
  readonly name: string;
  /** `card`: a network card, or composed of cards. Containers, VMs and VPNs create none. */
  readonly kind: 'card' | 'bridge' | 'other';
  /** Set if only containers, pods and VMs are behind it: no network card is below it. */
  readonly isInternal?: true;
  /** Set if its packets travel inside packets of another interface, which may be a tunnel. */
  readonly isOverlay?: true;
  /** Undefined if unknown. */
  readonly mtu?: number;
  /** Set if no packet passes: the interface is set down, or its card has no carrier. */
  readonly isDown?: true;
}
