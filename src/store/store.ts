import type { CpnError } from '../core/errors.ts';
import type { Notes } from './notes.ts';
import type { State } from './state.ts';

export type { Notes, Sync } from './notes.ts';

/** The folders of one host; many hosts can live on one machine. */
export interface Folders {
  readonly config: string;
  readonly state: string;
  readonly runtime: string;
}

/** The networks of a host; one whose state is damaged, or of a later version, does not hide the others. */
export interface Listing {
  /** In the order of their interfaces' names. */
  readonly states: readonly State[];
  readonly unreadable: readonly { readonly interface: string; readonly error: CpnError }[];
}

/** What a host keeps on disk. Whatever the disk itself refuses is thrown as DiskFailed. */
export interface Store {
  list(): Promise<Listing>;
  /**
   * The state of one network, or null when there is none. A damaged file is replaced by the previous copy of it in what is
   * returned, and on disk by the next {@link lock}.
   *
   * @throws UnreadableFile when no copy is good, or the file is of a later version
   */
  read(link: string): Promise<State | null>;
  /** Replaces the state of a network, and keeps what it was as the previous copy. */
  write(state: State): Promise<void>;
  /** Does now what {@link write} of this very state needs but the disk: for whoever waits for something else meanwhile. */
  foresee(state: State): void;
  /** The interfaces whose state was last read from the previous copy, or stood open to others: what a {@link lock} mends. */
  readonly damaged: ReadonlySet<string>;
  /** True unless what was last written of this network is in the memory of this process alone, because the disk failed. */
  isOnDisk(link: string): boolean;
  readConfig(link: string): Promise<string | null>;
  writeConfig(link: string, text: string): Promise<void>;
  configPath(link: string): string;
  /** What the last passes noted; nothing when there is nothing good on disk. Never throws. */
  readNotes(link: string): Promise<Notes>;
  /** Notes that cannot be written are kept by this process alone. Never throws. */
  writeNotes(link: string, notes: Notes): Promise<void>;
  /** Changes a part of the notes; of this process's changes, however they overlap, none undoes another. Never throws. */
  amendNotes(link: string, part: Partial<Notes>): Promise<void>;
  /** Makes the folders; returns those that this process had to make, for the receipt. */
  prepare(): Promise<readonly string[]>;
  /** Removes all that is kept of one network; the folders named go with the last network, if nothing of others is in them. */
  forget(link: string, folders: readonly string[]): Promise<void>;
  /**
   * Runs `work` while no other process changes this host, with damaged states mended before; where no network is left
   * afterwards, nothing of ours stays.
   *
   * @throws Locked when another one does not end in time
   */
  lock<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Runs `work`, a change that a person asked for, while no other process makes one. It takes {@link lock} for each of its steps; while
   * it waits to be confirmed, passes go on.
   *
   * @throws Locked when another one does not end in time; at once where it is not to wait
   */
  change<T>(work: () => Promise<T>, waits?: boolean): Promise<T>;
  /**
   * Runs `work`, the whole life of a daemon, while no other daemon does; beside {@link lock}.
   *
   * @throws Locked at once, when there is another one
   */
  claim<T>(work: () => Promise<T>): Promise<T>;
}
