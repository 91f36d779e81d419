import type { Address, Prefix } from './cidr.ts';
import type { SocketEndpoint } from './endpoint.ts';
import type { PublicKey } from './keys.ts';
import type { InterfaceAddress } from './model.ts';
import type { Rule } from './rule.ts';
import type { Secret } from './secret.ts';

/** Everything a pass needs to know of the host, read anew each time. */
export interface Actual {
  /** Our interface, or whatever bears its name; null when there is none. */
  readonly link: Link | null;
  /** WireGuard's own table; null when the link is not there or is no WireGuard interface. */
  readonly device: Device | null;
  /** Routes of all tables that lead into our interface, without those the kernel made itself. */
  readonly routes: readonly Route[];
  /** The ranges of the interface's addresses that have a route into it, which the kernel makes. */
  readonly onLink: readonly Prefix[];
  /** The IPv4 policy rules of the host, without those the kernel made itself. */
  readonly rules: readonly Rule[];
  /**
   * The comments of the rules in our nft table, `chain comment`; null when the table is not there. What of it cannot be read is
   * listed like a rule.
   */
  readonly firewall: readonly string[] | null;
  /** Values of the sysctl keys we care for, as the kernel prints them. */
  readonly sysctls: Readonly<Record<string, string>>;
  /** True where these cannot be written, as in most containers. */
  readonly isSealed?: boolean;
  /** The hosts file; null where nobody asked for it. */
  readonly hosts: HostsFile | null;
  readonly surroundings: Surroundings;
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
}

/** Where an SSH session to this host comes from. */
export interface SshClient {
  readonly address: Address;
  /** The address of this host that it came to; null where that is not known. */
  readonly local: Address | null;
}

/** What lies around the tunnel, and must not be cut off by it. */
export interface Surroundings {
  /** Addresses at which this host is reached outside its tunnels: without loopback, link-local IPv6 and all our interfaces. */
  readonly addresses: readonly Address[];
  /** Subnets that this host is in, but for those of our own interface. */
  readonly connected: readonly { readonly prefix: Prefix; readonly link: string }[];
  /** What somebody else routes elsewhere: the main table without default routes and those the kernel made itself. */
  readonly routed: readonly { readonly prefix: Prefix; readonly link: string }[];
  readonly gateways: readonly Address[];
  /** The interfaces of the IPv4 default routes. */
  readonly uplinks: readonly string[];
  /** All interfaces but loopback and our own. */
  readonly links: readonly HostLink[];
  readonly resolvers: readonly Address[];
  readonly sshClients: readonly SshClient[];
  /** The smallest MTU of the links with a default route; null when there is no default route. */
  readonly underlayMtu: number | null;
}

/** An interface of the host. */
export interface HostLink {
  readonly name: string;
  /** `card` is a network card, and what is put together of cards: no program for containers, virtual machines or VPNs makes these. */
  readonly kind: 'card' | 'bridge' | 'other';
  /** Undefined where it is not known. */
  readonly mtu?: number;
}
