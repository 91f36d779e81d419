/** How the troubled proxy treats what is asked of it, until it is told otherwise. */
export type Trouble =
  /** All well: everything is passed on, and back. */
  | { readonly kind: 'pass' }
  /** The same answer to everything. */
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
  /** Nobody listens. */
  | { readonly kind: 'refuse' }
  /** Half of the promised body, and a reset. */
  | { readonly kind: 'truncated' }
  /** A body of 100 MiB. */
  | { readonly kind: 'oversize' }
  /** A small body that inflates to 200 MiB. */
  | { readonly kind: 'bomb' }
  /** Everything is done as asked, and a reset comes in place of the answer. */
  | { readonly kind: 'lose' }
  /** The true map with changes. */
  | { readonly kind: 'map'; readonly changes: MapChanges }
  /** A service that has no ETag, holds nothing back, and does not know the headers that would ask it to. */
  | { readonly kind: 'plain' }
  /** At once, a map with another stranger in it, and another ETag, each time that it is asked for. */
  | { readonly kind: 'churn' };

/** Changes to the map that the control plane serves, in the names of the wire. */
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

/** Peers with keys that nobody has. */
export interface Crowd {
  readonly count: number;
  /** The first one's address; the others follow. */
  readonly from: string;
  readonly type: string;
  /** The number that the first one's key is made from; 0 unless told. */
  readonly first?: number;
}
