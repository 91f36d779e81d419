/** How the faulty proxy handles requests, until the next order. */
export type ProxyFault =
  /** No fault: everything is passed on, and back. */
  | { readonly kind: 'pass' }
  /** The same reply to every request. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** A good beginning, and then a byte at a time for ever. */
  | { readonly kind: 'drip' }
  /** Connections are accepted, and nothing comes back. */
  | { readonly kind: 'silent' }
  /** Connections are refused. */
  | { readonly kind: 'refuse' }
  /** Half of the promised body, and a reset. */
  | { readonly kind: 'truncated' }
  /** A body of 100 MiB. */
  | { readonly kind: 'oversize' }
  /** A small body that inflates to 200 MiB. */
  | { readonly kind: 'bomb' }
  /** The request is passed on, and a reset comes in place of the answer. */
  | { readonly kind: 'lose' }
  /** The true map with changes. */
  | { readonly kind: 'map'; readonly changes: MapChanges }
  /** A service without ETags and long polls, which ignores the headers that request them. */
  | { readonly kind: 'plain' }
  /** At once, a map with another stranger in it, and another ETag, at each request. */
  | { readonly kind: 'churn' };

/** Changes to the map that the control plane serves, with the names of the API. */
export interface MapChanges {
  /** Fields of the network to set; `peers` too, for a list that is none. */
  readonly network?: Readonly<Record<string, unknown>>;
  /** By their name: fields of peers to set, or null for a peer to leave out. */
  readonly peers?: Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;
  /** Fields to leave out of every peer. */
  readonly without?: readonly string[];
  /** Strangers to add. */
  readonly crowd?: Crowd;
}

/** Peers with keys of no host. */
export interface Crowd {
  readonly count: number;
  /** The first one's address; the others follow. */
  readonly from: string;
  readonly type: string;
  /** The number that the first one's key is made from; 0 by default. */
  readonly first?: number;
}
