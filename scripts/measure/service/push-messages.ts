/** A peer that waits: its token, and where. */
export interface Member {
  readonly network: number;
  readonly peer: number;
  readonly token: string;
}

/** The requests to the control plane's process; it answers each. */
export type ServerOrder =
  | {
      readonly kind: 'serve';
      readonly folder: string;
      /** The URL of a PostgreSQL database; null for one in the folder. */
      readonly database: string | null;
      /**
       * Networks that are there from the start, without a request; none where other processes share
       * the database.
       */
      readonly networks: number;
      /** Of each of them. */
      readonly peers: number;
      /** The peers of the one network report, and the console is served. */
      readonly isReporting?: boolean;
      /** The peers have tags, and their hosts enforce rules. */
      readonly isTagged?: boolean;
    }
  | { readonly kind: 'look' }
  | { readonly kind: 'end' };

/** What the control plane has used and has, all since it began but for what it has now. */
export interface Used {
  /** Requests that wait now. */
  readonly waiting: number;
  readonly cpuMs: number;
  /** Memory that is resident now, in MiB, and the most so far. */
  readonly rssMiB: number;
  readonly mostRssMiB: number;
  /** Statements to the database, without those that begin and end transactions. */
  readonly statements: number;
  /** Transactions that were committed. */
  readonly commits: number;
}

export type ServerAnswer =
  | {
      readonly kind: 'serving';
      readonly url: string;
      readonly owner: { readonly email: string; readonly password: string };
      readonly members: readonly Member[];
    }
  | ({ readonly kind: 'looked' } & Used);

/**
 * The requests to a process of waiting clients: to begin, to report as well, and how many replies
 * the next change is to bring.
 */
export type ClientOrder =
  | {
      readonly kind: 'wait';
      readonly url: string;
      readonly members: readonly Member[];
      /** What all of them have of their networks, by their ids. */
      readonly etags: Readonly<Record<number, string>>;
      readonly deltas: boolean;
      readonly reconnect: boolean;
    }
  | {
      readonly kind: 'report';
      readonly url: string;
      readonly members: readonly Member[];
      /** Between two reports of each. */
      readonly seconds: number;
    }
  | { readonly kind: 'expect'; readonly replies: number };

/**
 * What a change brought, reply by reply: nanoseconds by the machine's clock when the last byte
 * came, and bytes with the head.
 */
export type ClientAnswer =
  | { readonly kind: 'expecting' }
  | {
      readonly kind: 'replies';
      readonly at: readonly string[];
      readonly bytes: readonly number[];
      readonly statuses: readonly number[];
    };
