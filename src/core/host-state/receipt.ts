/** A resource that we created or changed, and must revert. It is recorded before it is created. */
export type OwnedResource =
  | { readonly made: 'interface'; readonly link: string }
  | { readonly made: 'firewall'; readonly link: string }
  /**
   * Policy rules, which outlive the interface: of a full tunnel, or of the network's table of
   * accepted routes. The table stays reserved until the network is taken down.
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
  /** `net.ipv4.ip_forward` at that time. If it differs later, a tool has set every interface. */
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
  /** True for firewalld's permanent configuration, used from its next start. ufw has only one. */
  readonly permanent: boolean;
}

/** A port's state in a running firewall. `ours` has our comment, `refused` drops the packets. */
export interface PortState {
  readonly at: OpenPort;
  readonly is: 'open' | 'closed' | 'ours' | 'refused';
}
