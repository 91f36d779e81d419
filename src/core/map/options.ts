import type { Prefix } from '../net/cidr.ts';
import type { ProbeTarget } from './probe-target.ts';

/**
 * `report` uses the new key and reports it until an operator accepts it; `strict` keeps the old key
 * until then.
 */
export type PinRule = (typeof pinRules)[number];

export const pinRules = ['report', 'strict'] as const;

/** The decisions of the operator who joined this host. Passes never change them. */
export interface Options {
  readonly listenPort: number | null;
  readonly mtu: number | null;
  readonly acceptRoutes: boolean;
  readonly masquerade: boolean;
  /** Prefixes that the guard must accept. */
  readonly allowRoutes: readonly Prefix[];
  /** Hosts behind a connector's routes, by which it determines whether its LAN works. */
  readonly probes: readonly ProbeTarget[];
  /** True if the hosts file names the peers. */
  readonly hosts: boolean;
  /** What happens to a peer whose public key changed without a signed proof. */
  readonly pin: PinRule;
  /** Seconds after which the daemon creates a new key pair; null for never. */
  readonly rotateEvery: number | null;
  /** True if ufw and firewalld, while they are active, must accept UDP to the listen port. */
  readonly openFirewall: boolean;
  /**
   * True if a full tunnel also takes what other routes of the host lead elsewhere, such as those
   * that DHCP adds.
   */
  readonly strictTunnel: boolean;
  /** True if a host with a full tunnel sends IPv6 outside. Otherwise it rejects IPv6. */
  readonly allowIpv6Outside: boolean;
}
