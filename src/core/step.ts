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
   * Into the main table unless told; `replaces` is set where another interface of ours has this very route, and is to lose it. With
   * `source` it is the route that the kernel makes for this address of the interface.
   */
  | {
      readonly add: 'route';
      readonly prefix: Prefix;
      readonly table?: string;
      readonly source?: Address;
      readonly replaces?: true;
    }
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
  /**
   * What becomes of the key in the receipt, which by default names what the value was. `none` is for a key of our own interface,
   * and for what another step of the plan undoes; `strike` takes back what the receipt names.
   */
  readonly receipt?: 'none' | 'strike' | Opening;
}

/** An interface whose forwarding is turned on, and what the host was like then. */
export interface Opening {
  readonly link: string;
  /** Whether forwarding as a whole was on (`net.ipv4.ip_forward`); once it differs, another tool has set every interface. */
  readonly all: string;
  /** The interfaces that were there. */
  readonly links: readonly string[];
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
  /**
   * What comes in by interfaces that forward for this connector alone, and would leave by one that was there before: answers to
   * connections that began elsewhere pass, and nothing else.
   */
  | { readonly rule: 'accept-passing-answers' | 'refuse-passing'; readonly by: Links; readonly toward: Links }
  /** Ends connections that began while their source was masqueraded, and is not any more, or the other way round. */
  | ({ readonly rule: 'refuse-stale'; readonly masquerade: boolean } & Ways)
  /** Lets in what was sent to this host itself, and is handed on by another program's rule: a container's published port. */
  | { readonly rule: 'accept-published' | 'accept-published-answers'; readonly at: Address }
  /** Lets through the answers in connections that began between these: out of the tunnel, into it, or from peer to peer. */
  | ({ readonly rule: 'accept-answers'; readonly way: 'in' | 'out' | 'across' } & Ways)
  /** Lets in the answers in connections that began behind this host, and to which another program gave its address: a container's. */
  | { readonly rule: 'accept-local-answers'; readonly outside: Links }
  /** Refuses the other answers that come out of the tunnel, or go into it. */
  | { readonly rule: 'refuse-answers'; readonly way: 'in' | 'out' }
  /** Lets through what goes from one peer to another. */
  | ({ readonly rule: 'accept-relayed' } & Ways)
  /** Lets through what goes from the network to the LAN. */
  | ({ readonly rule: 'accept-inward' } & Ways)
  /**
   * Lets through what goes from the network out by the default routes of this host, to none of the special ranges, and the answers
   * to it.
   */
  | ({
      readonly rule: 'accept-exit' | 'accept-exit-answers';
      readonly by: Links;
      readonly except: readonly Prefix[];
    } & Ways)
  /** Refuses what else comes from the tunnel: a peer reaches what is advertised, not all that this host could forward to. */
  | { readonly rule: 'refuse-rest' }
  /** Lets through what the LAN sends into the network, by the interfaces that its routes use. */
  | ({ readonly rule: 'accept-outward'; readonly by: Links } & Ways)
  /** Refuses what bears an address of the network, or of a LAN, and came by another interface. */
  | { readonly rule: 'refuse-spoofed'; readonly from: readonly Prefix[] }
  /** Refuses the neighbours of this host: what else comes by these interfaces. */
  | { readonly rule: 'refuse-outside'; readonly by: Links }
  /** Ends connections into the tunnel that were masqueraded here, and that no route lets through any more. */
  | { readonly rule: 'refuse-known' }
  /** Gives packets from the tunnel to the LAN this host's address, so that the LAN needs no route back. */
  | ({ readonly rule: 'masquerade' } & Ways)
  /** Gives packets from the LAN into the tunnel this peer's address. */
  | ({ readonly rule: 'masquerade-outward' } & Ways)
  /** Gives packets from one peer to another this peer's address. */
  | { readonly rule: 'masquerade-relayed'; readonly from: readonly Prefix[]; readonly except: Address }
  /** Leaves answers to the rules before masquerading. */
  | { readonly rule: 'accept-leaving-answers' }
  /** Refuses what goes into the tunnel, and bears after masquerading neither an address of this host nor one of these. */
  | { readonly rule: 'refuse-foreign'; readonly from: readonly Prefix[] };

/** Names of interfaces, at least one where nothing else is said. */
type Links = readonly string[];

/** Where packets come from and where they go, none of either overlapping another. */
interface Ways {
  readonly from: readonly Prefix[];
  readonly to: readonly Prefix[];
}
