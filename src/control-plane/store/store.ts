import type { Db } from './tables.ts';

/** The changed part of a network: its map, its health and events, or the messages for its hosts. */
export type Topic = 'map' | 'health' | 'messages';

export interface ControlPlaneStore {
  readonly db: Db;
  close(): Promise<void>;
  /** Announces a change to the other processes on this database when the transaction commits. */
  announce(transaction: Db, network: number, topic: Topic): Promise<void>;
  /** False while changes by other processes do not arrive. */
  isListening(): boolean;
}

/** The events of a store, caused by other processes on its database. */
export interface StoreEvents {
  /** A change of the network was committed, and can be read. */
  notify(network: number, topic: Topic): void;
  /** True if a request waits for such a change of the network. */
  isAwaited(network: number, topic: Topic): boolean;
  /** Changes may have been missed. */
  notifyAll(): void;
  /** Changes by other processes are missed until the next {@link notifyAll}. */
  lost(reason: string): void;
  /** Roles without any right in the database may connect to it. */
  openToOthers(database: string): void;
}
