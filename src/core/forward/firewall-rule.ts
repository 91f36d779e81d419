import type { Address, Prefix } from '../net/cidr.ts';
import type { ArrivalRule } from './arrival-rules.ts';
import type { DeadlineRule } from './deadline-rules.ts';
import type { Ipv6Rule } from './ipv6-outside.ts';
import type { ReturnPathRule } from './return-path-rules.ts';

/** The packet rules of a host for one network, in the order in which they are applied. */
export interface Firewall {
  readonly link: string;
  readonly rules: readonly FirewallRule[];
}

export type FirewallRule =
  | ArrivalRule
  | ReturnPathRule
  | Ipv6Rule
  | DeadlineRule
  /** Lowers the MSS of TCP connections that go into the tunnel, or come out of it, to what fits through it. */
  | { readonly rule: 'clamp-mss'; readonly direction: 'in' | 'out' }
  /**
   * Refuses what another connector hands on for a peer that does not answer here either: two that both do not hear it would
   * send its packets to each other until these are too old.
   */
  | ({ readonly rule: 'refuse-detour' } & RuleEnds)
  /**
   * What comes in by interfaces that forward for this connector alone, and would leave by one that was there before: answers to
   * connections that began elsewhere pass, and nothing else.
   */
  | { readonly rule: 'accept-passing-answers' | 'refuse-passing'; readonly by: Links; readonly toward: Links }
  /** Ends connections that began while their source was masqueraded, and is not any more, or the other way round. */
  | ({ readonly rule: 'refuse-stale'; readonly masquerade: boolean } & RuleEnds)
  /** Lets in what was sent to this host itself, and is handed on by another program's rule: a container's published port. */
  | { readonly rule: 'accept-published' | 'accept-published-answers'; readonly at: Address }
  /** Lets through the answers in connections that began between these: out of the tunnel, into it, or from peer to peer. */
  | ({ readonly rule: 'accept-answers'; readonly direction: 'in' | 'out' | 'across' } & RuleEnds)
  /** Lets in the answers in connections that began behind this host, and to which another program gave its address: a container's. */
  | { readonly rule: 'accept-local-answers'; readonly outside: Links }
  /** Refuses the other answers that come out of the tunnel, or go into it. */
  | { readonly rule: 'refuse-answers'; readonly direction: 'in' | 'out' }
  /** Lets through what goes from one peer to another. */
  | ({ readonly rule: 'accept-relayed' } & RuleEnds)
  /** Lets through what goes from the network to the LAN. */
  | ({ readonly rule: 'accept-inward' } & RuleEnds)
  /**
   * Lets through what goes from the network out by the default routes of this host, to none of the special ranges, and the answers
   * to it.
   */
  | ({
      readonly rule: 'accept-exit' | 'accept-exit-answers';
      readonly by: Links;
      readonly except: readonly Prefix[];
    } & RuleEnds)
  /** Refuses what else comes from the tunnel: a peer reaches what is advertised, not all that this host could forward to. */
  | { readonly rule: 'refuse-rest' }
  /** Lets through what the LAN sends into the network, by the interfaces that its routes use. */
  | ({ readonly rule: 'accept-outward'; readonly by: Links } & RuleEnds)
  /** Refuses what bears an address of the network, or of a LAN, and came by another interface. */
  | { readonly rule: 'refuse-spoofed'; readonly from: readonly Prefix[] }
  /** Refuses the neighbours of this host: what else comes by these interfaces. */
  | { readonly rule: 'refuse-outside'; readonly by: Links }
  /** Ends connections into the tunnel that were masqueraded here, and that no route lets through any more. */
  | { readonly rule: 'refuse-known' }
  /** Gives packets from the tunnel to the LAN this host's address, so that the LAN needs no route back. */
  | ({ readonly rule: 'masquerade' } & RuleEnds)
  /** Gives packets from the LAN into the tunnel this peer's address. */
  | ({ readonly rule: 'masquerade-outward' } & RuleEnds)
  /** Gives packets from one peer to another this peer's address. */
  | { readonly rule: 'masquerade-relayed'; readonly from: readonly Prefix[]; readonly except: Address }
  /** Leaves answers to the rules before masquerading. */
  | { readonly rule: 'accept-leaving-answers' }
  /** Refuses what goes into the tunnel, and bears after masquerading neither an address of this host nor one of these. */
  | { readonly rule: 'refuse-foreign'; readonly from: readonly Prefix[] };

/** Names of interfaces, at least one where nothing else is said. */
type Links = readonly string[];

/** Where packets come from and where they go, none of either overlapping another. */
interface RuleEnds {
  readonly from: readonly Prefix[];
  readonly to: readonly Prefix[];
}
