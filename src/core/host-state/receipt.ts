/**
 * A resource that we created or changed on a host, and must remove or revert. It is recorded before
 * it is created.
 */
export type OwnedResource =
  | { readonly made: 'interface'; readonly link: string }
  | { readonly made: 'firewall'; readonly link: string }
  /**
   * Policy rules, which outlive the interface: those of a full tunnel, or those that lead to the
   * table of the network's accepted routes. The table stays the network's until the network is
   * taken down.
   */
  | { readonly made: 'rules'; readonly link: string; readonly table?: string }
  | {
      readonly made: 'sysctl';
      readonly key: string;
      readonly before: string;
      readonly after: string;
      /** Set for the forwarding of an interface. */
      readonly opening?: OpenedForwarding;
    }
  /** Our block in the hosts file. */
  | { readonly made: 'hosts'; readonly link: string }
  | { readonly made: 'folder'; readonly path: string };

export type Receipt = readonly OwnedResource[];

/** An interface whose forwarding is turned on, and the host's state at that time. */
export interface OpenedForwarding {
  readonly link: string;
  /**
   * The value of `net.ipv4.ip_forward` at that time. If it differs later, another tool has set
   * every interface.
   */
  readonly all: string;
  /** The interfaces that existed. */
  readonly links: readonly string[];
}

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
