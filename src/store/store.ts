import type { CpnError } from '../core/errors/index.ts';
import type { Former } from './former-networks.ts';
import type { Notes } from './notes.ts';
import type { State } from './state/state.ts';

export type { Notes, Sync } from './notes.ts';

/** The folders of one host; many hosts can live on one machine. */
export interface Folders {
  readonly config: string;
  readonly state: string;
  readonly runtime: string;
}

/** The networks of a host; one whose state is damaged, or of a later version, does not hide the others. */
export interface StoredNetworks {
  /** In the order of their interfaces' names. */
  readonly states: readonly State[];
  readonly unreadable: readonly { readonly interface: string; readonly error: CpnError }[];
}

/** What a host keeps on disk. Errors of the disk itself are thrown as DiskFailed. */
export interface HostStore {
  list(): Promise<StoredNetworks>;
  /**
   * The state of one network, or null when there is none. A damaged file is replaced by the previous copy of it in what is
   * returned, and on disk by the next {@link lock}.
   *
   * @throws UnreadableFile when no copy is good, or the file is of a later version
   */
  read(link: string): Promise<State | null>;
  /** Calls back after any process wrote or removed the state of a network, until `signal` aborts; never where the system has no watch for it. */
  watch(link: string, signal: AbortSignal, onWrite: () => void): void;
  /** Replaces the state of a network, and keeps what it was as the previous copy. */
  write(state: State): Promise<void>;
  /** The interfaces whose state was last read from the previous copy, or was open to others; {@link lock} repairs both. */
  readonly damaged: ReadonlySet<string>;
  /** True unless what was last written of this network is in the memory of this process alone, because the disk failed. */
  isOnDisk(link: string): boolean;
  readConfig(link: string): Promise<string | null>;
  writeConfig(link: string, text: string): Promise<void>;
  /** Renames the wg-quick file, so that nothing brings up the tunnel by it; the next {@link writeConfig} removes it under its new name. */
  setConfigAside(link: string): Promise<void>;
  configPath(link: string): string;
  /** The notes of the last passes; empty when there are none on disk. Never throws. */
  readNotes(link: string): Promise<Notes>;
  /** Notes that cannot be written are kept by this process alone. Never throws. */
  writeNotes(link: string, notes: Notes): Promise<void>;
  /** Changes a part of the notes; of this process's changes, however they overlap, none undoes another. Never throws. */
  amendNotes(link: string, part: Partial<Notes>): Promise<void>;
  /** What is kept of networks that this host left. @throws UnreadableFile */
  readFormer(): Promise<Former>;
  /** Replaces it; without memberships the file goes, and the folders with it, where no network is joined and they are empty. */
  writeFormer(former: Former): Promise<void>;
  readonly formerPath: string;
  /** Makes the folders; returns those that this process had to make, for the receipt. */
  prepare(): Promise<readonly string[]>;
  /** Removes all that is kept of one network; the folders named go with the last network, if nothing of others is in them. */
  forget(link: string, folders: readonly string[]): Promise<void>;
  /**
   * Runs `work` while no other process changes this host, with damaged states repaired before; where no network is left
   * afterwards, nothing of ours stays.
   *
   * @throws Locked when another one does not end in time
   */
  lock<T>(work: () => Promise<T>): Promise<T>;
  /** True while a process holds {@link lock}. */
  isLocked(): Promise<boolean>;
  /**
   * Runs `work`, a change by an operator, while no other process makes one. It takes {@link lock} for each of its steps; while
   * it waits to be confirmed, passes go on.
   *
   * @throws Locked when another one does not end in time; at once where `waits` is false
   */
  change<T>(work: () => Promise<T>, waits?: boolean): Promise<T>;
  /**
   * Runs `work`, the whole life of a daemon, while no other daemon does; independent of {@link lock}.
   *
   * @throws Locked at once, when there is another one
   */
  lockDaemon<T>(work: () => Promise<T>): Promise<T>;
}
