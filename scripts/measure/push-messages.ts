/** A peer that waits: its token, and where. */
export interface Member {
  readonly network: number;
  readonly peer: number;
  readonly token: string;
}

/** What the control plane's process is told to do; it answers each. */
export type ServerOrder =
  | { readonly kind: 'serve'; readonly folder: string; readonly networks: number; readonly peers: number }
  | { readonly kind: 'look' }
  | { readonly kind: 'end' };

export type ServerAnswer =
  | {
      readonly kind: 'serving';
      readonly url: string;
      readonly owner: { readonly email: string; readonly password: string };
      readonly members: readonly Member[];
    }
  | { readonly kind: 'looked'; readonly waiting: number; readonly cpuMs: number };

/** What the process of those who wait is told: to begin, and how many replies the next change is to bring. */
export type ClientOrder =
  | {
      readonly kind: 'wait';
      readonly url: string;
      readonly members: readonly Member[];
      readonly deltas: boolean;
      readonly reconnect: boolean;
    }
  | { readonly kind: 'expect'; readonly replies: number };

/** What a change brought, reply by reply: nanoseconds by the machine's clock when the last byte came, and bytes with the head. */
export type ClientAnswer =
  | { readonly kind: 'expecting' }
  | {
      readonly kind: 'replies';
      readonly at: readonly string[];
      readonly bytes: readonly number[];
      readonly statuses: readonly number[];
    };
