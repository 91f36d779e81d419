/** Something that we made or changed on a host, and must take back. Written down before it is made. */
export type OwnedResource =
  | { readonly made: 'interface'; readonly link: string }
  | { readonly made: 'firewall'; readonly link: string }
  /**
   * Policy rules, which do not go with the interface: those of a full tunnel, or those that lead to the table of the network's accepted
   * routes. The table stays the network's until it is taken down.
   */
  | { readonly made: 'rules'; readonly link: string; readonly table?: string }
  | {
      readonly made: 'sysctl';
      readonly key: string;
      readonly before: string;
      readonly after: string;
      /** Of the forwarding of an interface. */
      readonly opening?: OpenedForwarding;
    }
  /** Our block in the hosts file. */
  | { readonly made: 'hosts'; readonly link: string }
  | { readonly made: 'folder'; readonly path: string };

export type Receipt = readonly OwnedResource[];

/** An interface whose forwarding is turned on, and what the host was like then. */
export interface OpenedForwarding {
  readonly link: string;
  /** Whether forwarding as a whole was on (`net.ipv4.ip_forward`); once it differs, another tool has set every interface. */
  readonly all: string;
  /** The interfaces that were there. */
  readonly links: readonly string[];
}
