import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Firewall } from '../forward/packet-rule.ts';
import type { OpenPort } from '../host-state/open-port.ts';
import type { Rule } from '../host-state/policy-rule.ts';
import type { OpenedForwarding } from '../host-state/receipt.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import type { InterfaceAddress } from '../net/interface-address.ts';
import type { DesiredPeer } from '../wg-quick/tunnel-config.ts';
import type { Change } from './change.ts';

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
  | SetSysctl
  /** Replaces our table of packet rules as a whole, in one transaction. */
  /** `now` is the time of the service, from which deadlines count; without it all that has a deadline is closed. */
  | { readonly do: 'set-firewall'; readonly firewall: Firewall; readonly now?: number }
  | { readonly do: 'remove-firewall'; readonly link: string }
  /** Puts our block into the hosts file, in place of the one that is there. A host works without it. */
  | { readonly do: 'set-hosts'; readonly link: string; readonly block: string }
  | { readonly do: 'remove-hosts'; readonly link: string }
  /** Lets UDP to the listen port in through a firewall program, or not any more. A tunnel works without, as far as it did before. */
  | { readonly do: 'open-port' | 'close-port'; readonly link: string; readonly at: OpenPort }
  | { readonly do: 'delete-link'; readonly link: string }
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
  /** 0 has the kernel choose one. */
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
  /**
   * Into the main table and with the usual metric unless given. `replaces` is the metric with which another interface of ours has this
   * route, and loses it. With `source` it is the route that the kernel makes for this address of the interface.
   */
  | {
      readonly add: 'route';
      readonly prefix: Prefix;
      readonly table?: string;
      readonly metric?: number;
      readonly source?: Address;
      readonly replaces?: number;
    }
  | {
      readonly remove: 'route';
      readonly prefix: Prefix;
      readonly protocol: string;
      readonly table?: string;
      readonly metric?: number;
      readonly tos?: string;
    }
  /** Ends the lookup of this prefix in the table, and goes on with the next rule. */
  | { readonly add: 'throw'; readonly prefix: Prefix; readonly table: string }
  | { readonly remove: 'throw'; readonly prefix: Prefix; readonly table: string }
  | { readonly add: 'rule'; readonly rule: Rule }
  | { readonly remove: 'rule'; readonly rule: Rule };

export interface SetSysctl {
  readonly do: 'set-sysctl';
  /** Dotted, as `sysctl` prints it. */
  readonly key: string;
  readonly value: string;
  /**
   * What becomes of the key in the receipt, which by default names what the value was. `none` is for a key of our own interface,
   * and for what another step of the plan undoes; `remove` takes back what the receipt names.
   */
  readonly receipt?: 'none' | 'remove' | OpenedForwarding;
}
