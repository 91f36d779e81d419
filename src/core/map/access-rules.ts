import type { RuleProtocol } from '../../contract/rules.ts';
import type { Address, Prefix } from '../net/cidr.ts';

/** Who may send and receive, by what the control plane states: never by what a host does. */
export type Selector =
  | { readonly kind: 'any' }
  | { readonly kind: 'peer'; readonly id: number | string }
  | { readonly kind: 'tag'; readonly tag: string }
  /** A route of the network. */
  | { readonly kind: 'route'; readonly prefix: Prefix }
  /** A part of a route. */
  | { readonly kind: 'cidr'; readonly prefix: Prefix }
  /** A peer that was removed. Selects nothing, also not a later peer of that name. */
  | { readonly kind: 'gone'; readonly name: string };

/** Destination ports, both included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** Allows connections from some peers and routes to others. */
export interface Rule {
  readonly name: string;
  readonly from: readonly Selector[];
  readonly to: readonly Selector[];
  readonly protocol: RuleProtocol;
  /** Empty for all. With `any`, which only other services send, they are those of tcp and udp. */
  readonly ports: readonly PortRange[];
}

/** True if a rule or a test for the protocol may name ports. */
export function hasPorts(protocol: RuleProtocol): boolean {
  return protocol === 'tcp' || protocol === 'udp';
}

export const notPorts = 'is for tcp and udp alone; set protocol: tcp or udp';

/** The rules of a closed network: what none of them allows is denied. */
export interface AccessRules {
  readonly rules: readonly Rule[];
  /** True if no peer is a destination whose host does not enforce rules. */
  readonly requiresEnforcement: boolean;
  /** Names of rules of which this version cannot use a part. They allow less, never more. */
  readonly unread?: readonly string[];
}

/** A connection, or the packet that begins it, with its addresses in the network. */
export interface Flow {
  readonly from: Address;
  readonly to: Address;
  /** Any other protocol is allowed only by a rule for any protocol. */
  readonly protocol: 'tcp' | 'udp' | 'icmp' | 'other';
  /** The destination port of tcp and udp; null for other protocols. */
  readonly port: number | null;
  /** True for an ICMP echo request. */
  readonly isEcho?: boolean;
}
