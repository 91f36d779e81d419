import type { Prefix } from '../net/cidr.ts';
import type { ProbeTarget } from './probe-target.ts';

/** `report` uses the new key and reports it until an operator accepts it; `strict` keeps the old key until then. */
export type PinRule = (typeof pinRules)[number];

export const pinRules = ['report', 'strict'] as const;

/** What the person who joined this host decided; it outlives every pass. */
export interface Options {
  readonly listenPort: number | null;
  readonly mtu: number | null;
  readonly acceptRoutes: boolean;
  readonly masquerade: boolean;
  /** Prefixes that the guard must let through. */
  readonly allowRoutes: readonly Prefix[];
  /** Hosts behind a connector's routes, by which it tells whether its LAN is well. */
  readonly probes: readonly ProbeTarget[];
  /** Whether the hosts file names the peers. */
  readonly hosts: boolean;
  /** What happens to a peer whose public key changed without a signed proof. */
  readonly pin: PinRule;
  /** Seconds after which the daemon makes a new key pair; null for never. */
  readonly rotateEvery: number | null;
  /** Whether ufw and firewalld, where they are on, are to let UDP to the listen port in. */
  readonly openFirewall: boolean;
  /** Whether a full tunnel also takes what other routes of the host lead elsewhere, such as those that DHCP adds. */
  readonly strictTunnel: boolean;
  /** Whether a host with a full tunnel lets IPv6 out; else it rejects it. */
  readonly allowIpv6Outside: boolean;
}
