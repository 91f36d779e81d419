import type { CpnError } from '../core/errors/index.ts';
import type { Prefix } from '../core/net/cidr.ts';
import type { Former } from './former-networks.ts';
import type { Notes } from './notes.ts';
import type { State } from './state/state.ts';

export type { Notes, Sync } from './notes.ts';

/** The folders of one host. One machine can have many. */
export interface Folders {
  readonly config: string;
  readonly state: string;
  readonly runtime: string;
}

/** The networks of a host. A damaged or newer state does not hide the others. */
export interface StoredNetworks {
  /** Sorted by interface name. */
  readonly states: readonly State[];
  readonly unreadable: readonly { readonly interface: string; readonly error: CpnError }[];
}

/** The persistent data of a host. Disk errors are thrown as DiskFailed. */
export interface HostStore {
  list(): Promise<StoredNetworks>;
  /**
   * The state of one network, or null. If the file is damaged, returns its previous copy. The next
   * {@link lock} repairs the file.
   *
   * @throws UnreadableFile if no copy is good, or if the file has a later version
   */
  read(link: string): Promise<State | null>;
  /**
   * Calls back after any process wrote or removed the state of a network, until `signal` aborts.
   * Never calls back if the system has no file watch left.
   */
  watch(link: string, signal: AbortSignal, onWrite: () => void): void;
  /** Replaces the state of a network, and keeps the replaced state as the previous copy. */
  write(state: State): Promise<void>;
  /** Interfaces whose state was a previous copy, or exposed, when read; {@link lock} repairs it. */
  readonly damaged: ReadonlySet<string>;
  /** False if the disk failed, and the newest content is only in this process's memory. */
  isOnDisk(link: string): boolean;
  readConfig(link: string): Promise<string | null>;
  writeConfig(link: string, text: string): Promise<void>;
  /** Renames the wg-quick file, so that nothing uses it. {@link writeConfig} removes it later. */
  setConfigAside(link: string): Promise<void>;
  configPath(link: string): string;
  /** The notes of the last passes. Empty if the disk has none. Never throws. */
  readNotes(link: string): Promise<Notes>;
  /** Keeps notes in memory if they cannot be written. Never throws. */
  writeNotes(link: string, notes: Notes): Promise<void>;
  /** Changes a part. Concurrent changes within this process all apply. Never throws. */
  amendNotes(link: string, part: Partial<Notes>): Promise<void>;
  /** The record of networks that this host left. @throws UnreadableFile */
  /**
   * Writes for other programs which routes this host is in service for, and removes the files of
   * other routes.
   */
  writeServing(link: string, serving: ReadonlyMap<Prefix, boolean>): Promise<void>;
  /** Writes for other programs that this host is in service for no route of the network. */
  clearServing(link: string): Promise<void>;
  readFormer(): Promise<Former>;
  /**
   * Replaces the record. Without memberships, removes the file. Then also removes the empty
   * folders, if no network is joined.
   */
  writeFormer(former: Former): Promise<void>;
  readonly formerPath: string;
  /** Creates the folders. Returns the folders that this process created, for the receipt. */
  prepare(): Promise<readonly string[]>;
  /** Removes all data of one network. Empty `folders` are removed with the last network. */
  forget(link: string, folders: readonly string[]): Promise<void>;
  /**
   * Runs `work` while no other process changes this host. Repairs damaged states first. If no
   * network is left afterwards, removes all traces of cpn.
   *
   * @throws Locked if another process holds the lock for too long
   */
  lock<T>(work: () => Promise<T>): Promise<T>;
  /** True while a process holds {@link lock}. */
  isLocked(): Promise<boolean>;
  /**
   * Runs `work`, an operator's change, while no other process makes one. `work` takes {@link lock}
   * for each of its steps, so passes continue while it awaits confirmation.
   *
   * @throws Locked if another process holds the lock for too long; immediately if `waits` is false
   */
  change<T>(work: () => Promise<T>, waits?: boolean): Promise<T>;
  /** Runs `work` as the only daemon, apart from {@link lock}. @throws Locked at once for others */
  lockDaemon<T>(work: () => Promise<T>): Promise<T>;
}
