import type { Change } from './change.ts';
import type { Prefix } from './cidr.ts';
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
  | ConfigureLink
  | SetFirewall
  | RemoveFirewall
  | SetSysctl
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
  /** Into the main table unless told. */
  | { readonly add: 'route'; readonly prefix: Prefix; readonly table?: string }
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
  /** Lowers the MSS of TCP connections that leave by the tunnel to what fits through it. */
  | { readonly rule: 'clamp-mss' }
  /** Gives packets from the tunnel to the LAN this host's address, so that the LAN needs no route back. */
  | { readonly rule: 'masquerade'; readonly from: Prefix; readonly to: Prefix };
