import type { Change } from './change.ts';
import type { Address, Prefix } from './cidr.ts';
import type { PublicKey } from './keys.ts';
import type { DesiredPeer, InterfaceAddress } from './model.ts';
import type { Rule } from './rule.ts';
import type { Secret } from './secret.ts';

/**
 * One action on the host and the changes it makes. Steps are applied in the order of the plan; each is one process at
 * the most, except where an operating system needs two ways to make an interface.
 */
export type Step = (
  | CreateLink
  | ConfigureDevice
  | RemovePeers
  | RenewPeers
  | ConfigureLink
  | SetFirewall
  | RemoveFirewall
  | SetSysctl
  | SetHosts
  | RemoveHosts
  | DeleteLink
) & { readonly changes: readonly Change[] };

/** Makes a WireGuard interface, in user space where the kernel has no module. */
export interface CreateLink {
  readonly do: 'create-link';
  readonly link: string;
}

/** Sets what is named, adds and updates the peers named, and leaves the rest of WireGuard's table alone. */
export interface ConfigureDevice {
  readonly do: 'configure-device';
  readonly link: string;
  readonly privateKey?: Secret;
  readonly listenPort?: number;
  /** The mark on what WireGuard itself sends; null turns it off. */
  readonly fwmark?: number | null;
  readonly peers: readonly DeviceChange[];
}

/** A peer to add or update; an `endpoint` of null leaves the one in the kernel as it is. */
export type DeviceChange = DesiredPeer;

export interface RemovePeers {
  readonly do: 'remove-peers';
  readonly link: string;
  readonly publicKeys: readonly PublicKey[];
}

/**
 * Takes peers out and puts them in again as they are to be, in one call, so that WireGuard tries a handshake again at once: after one
 * without an answer it waits 5 s (REKEY_TIMEOUT), but a new peer may be asked right away (wg_peer_create in the kernel's
 * peer.c, Start in wireguard-go's peer.go).
 */
export interface RenewPeers {
  readonly do: 'renew-peers';
  readonly link: string;
  readonly peers: readonly DeviceChange[];
}

/** Link settings, addresses, routes and policy rules, in the order of the plan, as one batch. */
export interface ConfigureLink {
  readonly do: 'configure-link';
  readonly link: string;
  readonly commands: readonly LinkCommand[];
}

export type LinkCommand =
  | { readonly set: 'mtu'; readonly value: number }
  | { readonly set: 'alias'; readonly value: string }
  | { readonly set: 'up' }
  | { readonly add: 'address'; readonly address: InterfaceAddress }
  | { readonly remove: 'address'; readonly address: InterfaceAddress }
  /** Into the main table unless told; `replaces` is set where another interface of ours has this very route, and is to lose it. */
  | { readonly add: 'route'; readonly prefix: Prefix; readonly table?: string; readonly replaces?: true }
  | { readonly remove: 'route'; readonly prefix: Prefix; readonly protocol: string; readonly table?: string }
  | { readonly add: 'rule'; readonly rule: Rule }
  | { readonly remove: 'rule'; readonly rule: Rule };

/** Replaces our table of packet rules as a whole, in one transaction. */
export interface SetFirewall {
  readonly do: 'set-firewall';
  readonly firewall: Firewall;
}

export interface RemoveFirewall {
  readonly do: 'remove-firewall';
  /** The interface whose table goes. */
  readonly link: string;
}

export interface SetSysctl {
  readonly do: 'set-sysctl';
  /** Dotted, as `sysctl` prints it. */
  readonly key: string;
  readonly value: string;
}

/** Puts our block into the hosts file, in place of the one that is there. A host works without it. */
export interface SetHosts {
  readonly do: 'set-hosts';
  readonly link: string;
  readonly block: string;
}

export interface RemoveHosts {
  readonly do: 'remove-hosts';
  /** The interface whose block goes. */
  readonly link: string;
}

export interface DeleteLink {
  readonly do: 'delete-link';
  readonly link: string;
}

/** What a connector does to the packets it forwards. */
export interface Firewall {
  readonly link: string;
  readonly rules: readonly FirewallRule[];
}

export type FirewallRule =
  /** Lowers the MSS of TCP connections that go into the tunnel, or come out of it, to what fits through it. */
  | { readonly rule: 'clamp-mss'; readonly way: 'in' | 'out' }
  /**
   * Refuses what another connector hands on for a peer that does not answer here either: two that both do not hear it would
   * send its packets to each other until these are too old.
   */
  | ({ readonly rule: 'refuse-detour' } & Ways)
  /** Lets in what belongs to a connection that was let through before. */
  | { readonly rule: 'accept-replies' }
  /** Lets in what was sent to this host itself, and is handed on by somebody's rule: a container's published port. */
  | { readonly rule: 'accept-published'; readonly at: Address }
  /** Lets through what goes from one peer to another. */
  | ({ readonly rule: 'accept-relayed' } & Ways)
  /** Lets through what goes from the network to the LAN, and from the LAN to the network. */
  | ({ readonly rule: 'accept-inward' | 'accept-outward' } & Ways)
  /** Refuses what else comes from the tunnel: a peer reaches what is advertised, not all that this host could forward to. */
  | { readonly rule: 'refuse-rest' }
  /** Gives packets from the tunnel to the LAN this host's address, so that the LAN needs no route back. */
  | ({ readonly rule: 'masquerade' } & Ways)
  /** Gives packets from the LAN into the tunnel this peer's address. */
  | ({ readonly rule: 'masquerade-outward' } & Ways)
  /** Gives packets from one peer to another this peer's address. */
  | { readonly rule: 'masquerade-relayed'; readonly from: readonly Prefix[]; readonly except: Address };

/** Where packets come from and where they go, none of either overlapping another. */
interface Ways {
  readonly from: readonly Prefix[];
  readonly to: readonly Prefix[];
}
