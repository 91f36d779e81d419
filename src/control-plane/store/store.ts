import type { Db } from './tables.ts';

/** What of a network changed: what hosts read, its health and events, or the messages for its hosts. */
export type Topic = 'map' | 'health' | 'messages';

export interface ControlPlaneStore {
  readonly db: Db;
  close(): Promise<void>;
  /** Announces a change of a network to the other processes on this database when the transaction commits. */
  announce(transaction: Db, network: number, topic: Topic): Promise<void>;
  /** False while changes of other processes do not arrive. */
  isListening(): boolean;
}

/** What a store reports of the other processes on its database. */
export interface StoreEvents {
  /** A change of the network was committed, and can be read. */
  notify(network: number, topic: Topic): void;
  /** True where a request waits for such a change of the network. */
  isAwaited(network: number, topic: Topic): boolean;
  /** Changes may have been missed. */
  notifyAll(): void;
  /** Until the next {@link notifyAll} changes of other processes are missed. */
  lost(reason: string): void;
  /** Roles without any right in the database may connect to it. */
  openToOthers(database: string): void;
}
