/** A UDP port that is open in a firewall program of this host. */
export interface OpenPort {
  readonly by: 'ufw' | 'firewalld';
  readonly port: number;
  /** The zone of firewalld; null for ufw, which has none. */
  readonly zone: string | null;
  /**
   * True for firewalld's permanent configuration, which applies from its next start and is separate
   * from the runtime one. ufw has only one.
   */
  readonly permanent: boolean;
}

/**
 * The state of a port in a running firewall program. `ours` is a rule with our comment, `refused` a
 * rule that drops these packets.
 */
export interface PortState {
  readonly at: OpenPort;
  readonly is: 'open' | 'closed' | 'ours' | 'refused';
}
