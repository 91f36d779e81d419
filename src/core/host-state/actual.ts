import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import type { InterfaceAddress } from '../net/interface-address.ts';
import type { Rule } from './policy-rule.ts';

/** The host's state, which each pass observes again. */
export interface Actual {
  /** Our interface, or whatever bears its name; null when there is none. */
  readonly link: Link | null;
  /** WireGuard's own table; null when the link is not there or is no WireGuard interface. */
  readonly device: Device | null;
  /** Routes of all tables that lead into our interface, without those the kernel made itself. */
  readonly routes: readonly Route[];
  /** The ranges of the interface's addresses that have a route into it, which the kernel makes. */
  readonly onLink: readonly Prefix[];
  /** Our `throw` routes in tables of accepted routes, those of other networks included. Absent where the platform has none. */
  readonly throwRoutes?: readonly ThrowRoute[];
  /** The IPv4 policy rules of the host, without those the kernel made itself. */
  readonly rules: readonly Rule[];
  /**
   * The comments of the rules in our nft table, `chain comment`; null when the table is not there. What of it cannot be read is
   * listed like a rule.
   */
  readonly firewall: readonly string[] | null;
  /**
   * Seconds until the kernel removes the elements of our sets, by `set element`, as of this observation. Absent where no set has timeouts.
   */
  readonly timeouts?: Readonly<Record<string, number>>;
  /** Values of the sysctl keys we care for, as the kernel prints them. */
  readonly sysctls: Readonly<Record<string, string>>;
  /** True where these cannot be written, as in most containers. */
  readonly isSealed?: boolean;
  /** The hosts file; null where it was not requested. */
  readonly hosts: HostsFile | null;
  /** True where routes have neither a table nor a metric of their own. */
  readonly isPlain?: boolean;
  /**
   * Why links, addresses, routes and rules could not be read; they are empty then, and `underlay` too. WireGuard's own table is
   * read all the same.
   */
  readonly unread?: string;
  readonly underlay: Underlay;
}

/** The hosts file, as far as it matters to one network. */
export interface HostsFile {
  /** Our block in it; null when there is none. */
  readonly block: string | null;
  /** Why our block cannot be changed, and what to do about it; null when it can be. */
  readonly trouble: string | null;
}

export interface Link {
  readonly name: string;
  readonly mtu: number;
  readonly up: boolean;
  /** `ip link … alias`: our mark on an interface that we made. */
  readonly alias: string | null;
  readonly addresses: readonly InterfaceAddress[];
  /** The VRF that it belongs to, by which its packets come in too. */
  readonly vrf?: string;
}

export interface Device {
  /** Null while no private key is set. */
  readonly publicKey: PublicKey | null;
  readonly listenPort: number;
  /** The mark on the packets that WireGuard itself sends; null when off. */
  readonly fwmark: number | null;
  readonly peers: readonly ActualPeer[];
}

export interface ActualPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly endpoint: SocketEndpoint | null;
  readonly allowedIps: readonly Prefix[];
  /** Seconds, or null when off. */
  readonly keepalive: number | null;
  /** Seconds since the epoch by the host's wall clock; null when there was none yet. */
  readonly latestHandshake: number | null;
  readonly rxBytes: number;
  readonly txBytes: number;
}

export interface Route {
  readonly prefix: Prefix;
  /** The routing table: `main` or a number. */
  readonly table: string;
  /** Who made it, as iproute2 prints it: a name or a number. */
  readonly protocol: string;
  /** Of two routes to one prefix the lower metric wins; null where the platform tells none. */
  readonly metric: number | null;
  /** The type of service of the packets that alone take it. */
  readonly tos?: string;
  /** What it does to packets that a plain route into our interface does not, in the words of ip-route(8). */
  readonly deviation?: string;
  /** Set where another route to the same prefix in its table comes first. */
  readonly isOutdone?: true;
}

/**
 * A route of type `throw` of ours (ip-route(8)): a lookup that ends there goes on with the next policy rule, as if the table had no
 * route. It belongs to no interface, and outlives the tunnel.
 */
export interface ThrowRoute {
  readonly prefix: Prefix;
  readonly table: string;
}

/** Where an SSH session to this host comes from. */
export interface SshClient {
  readonly address: Address;
  /** The address of this host that it came to; null where that is not known. */
  readonly local: Address | null;
}

/** What lies around the tunnel, and must not be cut off by it. */
export interface Underlay {
  /** Addresses at which this host is reached outside its tunnels: without loopback, link-local IPv6 and all our interfaces. */
  readonly addresses: readonly Address[];
  /** Subnets that this host is in, but for those of our own interface. */
  readonly connected: readonly { readonly prefix: Prefix; readonly link: string }[];
  /** Routes of other programs by other interfaces: the main table without default routes and those the kernel made itself. */
  readonly routed: readonly RoutedPrefix[];
  /** Our other interfaces. Absent where the platform does not tell. */
  readonly tunnels?: readonly string[];
  /** What the main table refuses, its default route included: blackholes and the like. Absent where the platform tells none. */
  readonly refusing?: readonly Prefix[];
  /**
   * Where the kernel leads packets by another interface than ours: the main table without default routes, and the routes that the kernel
   * made itself. Undefined where the platform does not tell.
   */
  readonly reached?: readonly { readonly prefix: Prefix; readonly link: string }[];
  /**
   * True where the main table is too large to be read: then these three have what the kernel does with the prefixes in question, and the
   * routes that no routing daemon made.
   */
  readonly isSampled?: boolean;
  /**
   * What the kernel does with packets that come out of the tunnel for the prefixes that this host serves, by its rules and tables of this
   * moment. A prefix is absent where the kernel was not asked, or where it has no say: forwarding is off, or the addresses are this host's.
   */
  readonly forwarded?: Readonly<Record<Prefix, ForwardedRoute>>;
  /**
   * How packets of this host to the control plane, or its proxy, leave: interface, gateway and source, by all policy rules and tables.
   * Absent where the platform does not tell.
   */
  readonly paths?: Readonly<Record<Address, string>>;
  readonly gateways: readonly Address[];
  /** The interfaces of the IPv4 default routes. */
  readonly uplinks: readonly string[];
  /** Those of the IPv6 default routes. Absent where the platform does not tell. */
  readonly uplinks6?: readonly string[];
  /** All interfaces but loopback and our own. */
  readonly links: readonly HostLink[];
  /** Those of resolv.conf(5), and those that the settings of a local stub name. */
  readonly resolvers: readonly Address[];
  /** The local stubs among them; absent where there are none, or the platform does not tell. */
  readonly stubs?: readonly ResolverStub[];
  /** The smallest MTU of the links with a default route; null when there is no default route. */
  readonly underlayMtu: number | null;
}

/** A route of another program. */
export interface RoutedPrefix {
  readonly prefix: Prefix;
  readonly link: string;
  readonly metric?: number;
  /** Absent where the destination is on the link, or the platform does not tell. */
  readonly gateway?: Address;
  /** Who made it, as iproute2 prints it. */
  readonly protocol?: string;
}

/** Where packets for a served prefix go that come out of the tunnel. */
export interface ForwardedRoute {
  /** The interfaces other than the tunnel by which they leave. */
  readonly links: readonly string[];
  /** Why none of them leaves; null where one does. */
  readonly why: string | null;
}

/** A resolver of this host that passes queries on: a loopback address, or one of the host's own, in resolv.conf(5). */
export interface ResolverStub {
  readonly address: Address;
  /** True where some program listens there. */
  readonly isListening: boolean;
  /** The user who listens there, where this is no system user: its servers do not count. */
  readonly stranger?: number;
  /** The program that listens there; null where it cannot be seen. */
  readonly program: string | null;
  /** True where its settings were read, and name all servers that it queries. */
  readonly isStated: boolean;
  /** The servers that its settings name. */
  readonly stated: readonly Address[];
  /** The servers to which it has a socket now. */
  readonly observed: readonly Address[];
  /** The servers to which it has a socket with the address of a tunnel. */
  readonly tunnelled?: readonly Address[];
}

/** An interface of the host. */
export interface HostLink {
  readonly name: string;
  /** `card` is a network card, and what is put together of cards: no program for containers, virtual machines or VPNs makes these. */
  readonly kind: 'card' | 'bridge' | 'other';
  /** Set where it leads to containers, pods and virtual machines of this host alone: there is no network card below it. */
  readonly isInternal?: true;
  /** Undefined where it is not known. */
  readonly mtu?: number;
  /** Set where nothing goes in or out: it was set down, or a card has no carrier. */
  readonly isDown?: true;
}
