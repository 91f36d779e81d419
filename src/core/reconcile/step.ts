import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Firewall } from '../forward/packet-rule.ts';
import type { DropInProgram } from '../host-state/actual.ts';
import type { Rule } from '../host-state/policy-rule.ts';
import type { OpenedForwarding, OpenPort } from '../host-state/receipt.ts';
import type { DomainServers } from '../names/split-dns.ts';
import type { Address, InterfaceAddress, Prefix } from '../net/cidr.ts';
import type { DesiredPeer } from '../wg-quick/parse.ts';
import type { Change } from './change.ts';

/**
 * One action on the host, with the changes that it makes. It starts at most one process, except for
 * `create-link` where the kernel has no WireGuard, and for `set-dns`.
 */
export type Step = (
  | CreateLink
  | ConfigureDevice
  | RemovePeers
  | RenewPeers
  | ConfigureLink
  | SetSysctl
  | SetFirewall
  | { readonly do: 'remove-firewall'; readonly link: string }
  /** Replaces our block in the hosts file. The tunnel works without names. */
  | { readonly do: 'set-hosts'; readonly link: string; readonly block: string }
  | { readonly do: 'remove-hosts'; readonly link: string }
  | SetDns
  /** Removes the DNS settings of the interface, or our files. */
  | { readonly do: 'revert-dns'; readonly link: string; readonly files?: DnsFiles }
  /**
   * Opens or closes the listen port in a firewall program. If that fails, the tunnel works as
   * before.
   */
  | { readonly do: 'open-port' | 'close-port'; readonly link: string; readonly at: OpenPort }
  | { readonly do: 'delete-link'; readonly link: string }
) & { readonly changes: readonly Change[] };

/** Sets the DNS servers of these domains alone, for the interface or by files. */
export interface SetDns {
  readonly do: 'set-dns';
  readonly link: string;
  readonly dns: DomainServers;
  /** Absent for the interface. */
  readonly files?: DnsFiles;
}

/** Our files for a resolver. */
export interface DnsFiles {
  /** Reads its files again. */
  readonly program: DropInProgram;
  /** The text by path. Null removes the file. */
  readonly texts: Readonly<Record<string, string | null>>;
}

/** True of a step that may fail, because the tunnel works without names. */
export function isNamesStep(step: Step): boolean {
  return ['set-hosts', 'remove-hosts', 'set-dns', 'revert-dns'].includes(step.do);
}

/** Creates a WireGuard interface, in user space if the kernel has no module. */
export interface CreateLink {
  readonly do: 'create-link';
  readonly link: string;
}

/** Sets the given fields and peers of the device. Other fields and peers stay as they are. */
export interface ConfigureDevice {
  readonly do: 'configure-device';
  readonly link: string;
  readonly privateKey?: Secret;
  /** With 0, the kernel chooses a port. */
  readonly listenPort?: number;
  /** The mark on packets that WireGuard itself sends; null turns it off. */
  readonly fwmark?: number | null;
  readonly peers: readonly DeviceChange[];
}

/** A peer to add or update. With an `endpoint` of null, the kernel keeps its endpoint. */
export type DeviceChange = DesiredPeer;

export interface RemovePeers {
  readonly do: 'remove-peers';
  readonly link: string;
  readonly publicKeys: readonly PublicKey[];
}

/**
 * Removes peers and adds them again in their desired state, in one call, so that WireGuard starts a
 * handshake immediately. After an unanswered handshake, WireGuard waits 5 s (REKEY_TIMEOUT), but
 * not for a new peer (wg_peer_create in the kernel's peer.c, Start in wireguard-go's peer.go).
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
   * Adds a route, by default in the main table with the usual metric. `replaces` is the metric of
   * the route through another link that it replaces. With `source`, it is the route that the kernel
   * adds with this address.
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
  /** Ends the lookup of this prefix in the table, and continues with the next rule. */
  | { readonly add: 'throw'; readonly prefix: Prefix; readonly table: string }
  | { readonly remove: 'throw'; readonly prefix: Prefix; readonly table: string }
  | { readonly add: 'rule'; readonly rule: Rule }
  | { readonly remove: 'rule'; readonly rule: Rule };

/**
 * Loads the packet rules in one transaction. `now` is the service's time; without it, every peer
 * with a deadline counts as expired.
 */
export interface SetFirewall {
  readonly do: 'set-firewall';
  readonly firewall: Firewall;
  readonly now?: number;
  /** The loaded rules, if the table can be changed in place. */
  readonly loaded?: Firewall;
}

export interface SetSysctl {
  readonly do: 'set-sysctl';
  /** Dotted, as `sysctl` prints it. */
  readonly key: string;
  readonly value: string;
  /**
   * The key's receipt entry: the earlier value by default. `none` is for keys of our interface, and
   * settings that another step reverts. `remove` deletes the entry.
   */
  readonly receipt?: 'none' | 'remove' | OpenedForwarding;
}
