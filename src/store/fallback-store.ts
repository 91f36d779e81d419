import { AsyncLocalStorage } from 'node:async_hooks';
import { DiskFailed } from '../core/errors/index.ts';
import { DiskFailures, FallbackFiles, type ReportDiskFailure } from './fallback-files.ts';
import type { State } from './state/state.ts';
import { formatState } from './state/state-file.ts';
import type { HostStore, StoredNetworks } from './store.ts';

/**
 * A store for a daemon whose disk may fail:
 * - Content that cannot be written stays in memory, and takes precedence over the disk.
 * - Later reads and writes retry it under the lock, unless another process writes first: its
 *   content is newer.
 * - Content that can no longer be read stays as last read.
 * - If the disk cannot hold a lock, work runs without: no other process can hold it either.
 *
 * @param report called when the disk starts to fail, and when everything is on disk again
 * @param now milliseconds of a monotonic clock
 */
export function fallbackStore(
  store: HostStore,
  report: ReportDiskFailure,
  now: () => number = () => performance.now(),
): HostStore {
  const failures = new DiskFailures(report);
  const isAlone = new AsyncLocalStorage<true>();
  /** The end of the work that runs without a lock, one piece after the other. */
  let queue: Promise<unknown> = Promise.resolve();

  const context = { failures, now, alone: (work: () => Promise<void>) => (isAlone.getStore() ? work() : lock(work)) };
  const states = new FallbackFiles<State>(
    {
      kind: 'state',
      read: (link) => store.read(link),
      write: (_, state) => store.write(state),
      format: formatState,
    },
    context,
  );
  const configs = new FallbackFiles<string>(
    {
      kind: 'config',
      read: (link) => store.readConfig(link),
      write: (link, text) => store.writeConfig(link, text),
      format: (text) => text,
    },
    context,
  );

  function lock<T>(work: () => Promise<T>): Promise<T> {
    const held = () => isAlone.run(true, work);
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

  /** Runs `work` under a lock. If the disk cannot hold a lock, runs `otherwise`. */
  async function hold<T>(
    take: (work: () => Promise<T>) => Promise<T>,
    work: () => Promise<T>,
    otherwise: () => Promise<T>,
  ): Promise<T> {
    let begun = false;
    let done: { readonly result: T } | null = null;
    const begin = async () => {
      begun = true;
      failures.end('lock');
      done = { result: await work() };
      return done.result;
    };
    return take(begin).catch((error: unknown) => {
      if (!(error instanceof DiskFailed) || (begun && done === null)) throw error;
      failures.begin('lock', error);
      return done === null ? otherwise() : done.result;
    });
  }

  async function list(): Promise<StoredNetworks> {
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
    watch: (link, signal, onWrite) => store.watch(link, signal, onWrite),
    write: (state) => states.write(state.interface, state),
    get damaged() {
      return store.damaged;
    },
    isOnDisk: (link) => !states.isUnsaved(link),
    readConfig: (link) => configs.read(link),
    writeConfig: (link, text) => configs.write(link, text),
    async setConfigAside(link) {
      await store.setConfigAside(link);
      configs.forget(link);
    },
    configPath: (link) => store.configPath(link),
    readNotes: (link) => store.readNotes(link),
    writeNotes: (link, notes) => store.writeNotes(link, notes),
    amendNotes: (link, part) => store.amendNotes(link, part),
    writeServing: (link, serving) => store.writeServing(link, serving),
    clearServing: (link) => store.clearServing(link),
    readFormer: () => store.readFormer(),
    writeFormer: (former) => store.writeFormer(former),
    formerPath: store.formerPath,
    prepare: () => store.prepare(),
    async forget(link, folders) {
      await store.forget(link, folders);
      states.forget(link);
      configs.forget(link);
    },
    lock,
    isLocked: () => store.isLocked(),
    change: (work, waits) => hold((begin) => store.change(begin, waits), work, work),
    lockDaemon: (work) => hold((begin) => store.lockDaemon(begin), work, work),
  };
}
