import { AsyncLocalStorage } from 'node:async_hooks';
import { DiskFailed } from '../core/errors.ts';
import { Memory } from './memory.ts';
import type { State } from './state.ts';
import { formatState } from './state-file.ts';
import type { Listing, Store } from './store.ts';
import { type Report, Troubles } from './troubles.ts';

/**
 * A store for a daemon that outlives its disk. What cannot be written is kept in memory, stands before what is on the disk,
 * and is tried again at later reads and writes, under the lock; unless somebody else writes first, whose word is newer. What
 * can no longer be read stays in force as it was last read. Where no lock can be had because the disk takes none, the work
 * is done all the same: no other process can have it either.
 *
 * @param report is told when the disk begins to fail, and when all that was kept is on it
 * @param now milliseconds of a clock that nobody sets
 */
export function rememberingStore(store: Store, report: Report, now: () => number = () => performance.now()): Store {
  const troubles = new Troubles(report);
  const inside = new AsyncLocalStorage<true>();
  /** The end of the work that is done without a lock, one after the other. */
  let queue: Promise<unknown> = Promise.resolve();

  const around = {
    troubles,
    now,
    alone: (work: () => Promise<void>) => (inside.getStore() ? work() : lock(work)),
  };
  const states = new Memory<State>(
    {
      kind: 'state',
      read: (link) => store.read(link),
      write: (_, state) => store.write(state),
      format: formatState,
    },
    around,
  );
  const configs = new Memory<string>(
    {
      kind: 'config',
      read: (link) => store.readConfig(link),
      write: (link, text) => store.writeConfig(link, text),
      format: (text) => text,
    },
    around,
  );

  function lock<T>(work: () => Promise<T>): Promise<T> {
    const held = () => inside.run(true, work);
    return hold(
      (begin) => store.lock(begin),
      held,
      () => {
        const turn = queue.then(held);
        queue = turn.catch(() => {});
        return turn;
      },
    );
  }

  /** Works under a lock; where the disk takes none, `otherwise`. */
  async function hold<T>(
    take: (work: () => Promise<T>) => Promise<T>,
    work: () => Promise<T>,
    otherwise: () => Promise<T>,
  ): Promise<T> {
    let begun = false;
    let done: { readonly result: T } | null = null;
    const begin = async () => {
      begun = true;
      troubles.end('lock');
      done = { result: await work() };
      return done.result;
    };
    return take(begin).catch((error: unknown) => {
      if (!(error instanceof DiskFailed) || (begun && done === null)) throw error;
      troubles.begin('lock', error);
      return done === null ? otherwise() : done.result;
    });
  }

  async function list(): Promise<Listing> {
    const { states: read, unreadable } = await store.list().catch((error: unknown) => {
      if (!(error instanceof DiskFailed) || states.links().length === 0) throw error;
      return { states: [], unreadable: states.links().map((link) => ({ interface: link, error })) };
    });
    const found = new Map<string, State | null>(read.map((state) => [state.interface, state]));
    const failed = new Set(unreadable.map((each) => each.interface));
    for (const link of states.links()) if (!found.has(link) && !failed.has(link)) found.set(link, null);
    const newest = await Promise.all([...found].map(([link, state]) => states.overlay(link, state)));
    const recalled = unreadable.map((each) => states.recall(each.interface, each.error));
    return {
      states: [...newest, ...recalled]
        .filter((state) => state !== null)
        .sort((one, other) => (one.interface < other.interface ? -1 : 1)),
      unreadable: unreadable.filter((_, at) => recalled[at] === null),
    };
  }

  return {
    list,
    read: (link) => states.read(link),
    write: (state) => states.write(state.interface, state),
    foresee: (state) => store.foresee(state),
    get damaged() {
      return store.damaged;
    },
    isOnDisk: (link) => !states.isUnsaved(link),
    readConfig: (link) => configs.read(link),
    writeConfig: (link, text) => configs.write(link, text),
    configPath: (link) => store.configPath(link),
    readNotes: (link) => store.readNotes(link),
    writeNotes: (link, notes) => store.writeNotes(link, notes),
    amendNotes: (link, part) => store.amendNotes(link, part),
    prepare: () => store.prepare(),
    async forget(link, folders) {
      await store.forget(link, folders);
      states.forget(link);
      configs.forget(link);
    },
    lock,
    change: (work, waits) => hold((begin) => store.change(begin, waits), work, work),
    claim: (work) => hold((begin) => store.claim(begin), work, work),
  };
}
