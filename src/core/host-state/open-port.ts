/** A UDP port that is open in a firewall program of this host. */
export interface OpenPort {
  readonly by: 'ufw' | 'firewalld';
  readonly port: number;
  /** The zone of firewalld; null for ufw, which has none. */
  readonly zone: string | null;
  /** firewalld keeps what holds now apart from what holds after its next start; ufw does not. */
  readonly permanent: boolean;
}

/** What a program that is on says of a port. `ours` is a rule with our comment, `refused` one that drops these packets. */
export interface PortState {
  readonly at: OpenPort;
  readonly is: 'open' | 'closed' | 'ours' | 'refused';
}
