import { existsSync, watch } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CpnError, DiskFailed, UnreadableFile } from '../core/errors/index.ts';
import { moveFile, removeFile, removeLeftovers, replaceFile } from './files/atomic-file.ts';
import { expectedError, finallyDo } from './files/disk.ts';
import { FileCache } from './files/file-cache.ts';
import { closeFile, type Guarded, isExposed, type OnExposure, secureFolder } from './files/file-trust.ts';
import { listLinks, makeFolder, removeFolder } from './files/folder.ts';
import { formerName, readFormer, writeFormer } from './former-networks.ts';
import {
  changeLock,
  daemonLock,
  isLocked,
  type LockKind,
  passLock,
  removeLock,
  removeStale,
  withLock,
} from './lock.ts';
import { type Notes, readNotesFile, writeNotesFile } from './notes.ts';
import { clearServing, writeServing } from './serving-files.ts';
import type { State } from './state/state.ts';
import { copiesOf, holdsStates, mendState, readState, removeState, writeState } from './state/state-copies.ts';
import type { Folders, HostStore, StoredNetworks } from './store.ts';

/** Receives each damaged state file, once until repaired. The store uses its previous copy. */
export type OnDamage = (path: string, cause: UnreadableFile) => void;

/** A store in files. The README lists their locations. */
export function fileStore(
  folders: Folders,
  onDamage: OnDamage = () => {},
  onExposure: OnExposure = () => {},
): HostStore {
  const paths = pathsIn(folders);
  const configs = new FileCache(() => null);
  const made = new Set<string>();
  /** Folders that any process created for a network, as far as this process has read of them. */
  const known = new Set<string>();
  const damaged = new Set<string>();
  /** Networks with a file that was open to other users when it was last read. */
  const exposed = new Set<string>();
  const unwritten = new Map<string, Notes>();
  /** The end of the last change of notes. */
  let turn: Promise<void> = Promise.resolve();

  async function ensure(folder: string): Promise<void> {
    for (const each of await makeFolder(folder)) made.add(each);
    await secureFolder(folder, folder === folders.config, onExposure);
  }

  /** Closes files that other users could read. After a failure, the next lock tries again. */
  async function closeFiles(): Promise<void> {
    const links = await listLinks(folders.state);
    if (links.length > 0) await secureFolder(folders.state, false, onExposure).catch(expectedError);
    for (const file of [...links.flatMap(guarded), { path: paths.former, isOwn: true }]) {
      await removeLeftovers(file.path).catch(expectedError);
      await closeFile(file, onExposure).catch(expectedError);
    }
    exposed.clear();
  }

  function guarded(link: string): Guarded[] {
    const copies = copiesOf(paths.state(link)).map((path) => ({ path, isOwn: true }));
    return [{ path: paths.config(link), isOwn: false }, ...copies];
  }

  /** A path that is no regular file counts as a different text, so that it is replaced. */
  async function readConfig(link: string): Promise<string | null> {
    try {
      return (await configs.read(paths.config(link)))?.text ?? null;
    } catch (error) {
      if (error instanceof UnreadableFile) return '';
      throw error;
    }
  }

  async function read(link: string): Promise<State | null> {
    const reading = await readState(paths.state(link));
    if (reading?.damage && !damaged.has(link)) onDamage(paths.state(link), reading.damage);
    if (reading?.damage) damaged.add(link);
    else damaged.delete(link);
    if (reading && isExposed(folders.state, guarded(link))) exposed.add(link);
    else exposed.delete(link);
    for (const entry of reading?.state.receipt ?? []) if (entry.made === 'folder') known.add(entry.path);
    return reading?.state ?? null;
  }

  async function list(): Promise<StoredNetworks> {
    const states: State[] = [];
    const unreadable: StoredNetworks['unreadable'][number][] = [];
    for (const link of await listLinks(folders.state)) {
      const reading = await read(link).catch(expectedError);
      if (reading instanceof CpnError) unreadable.push({ interface: link, error: reading });
      else if (reading !== null) states.push(reading);
    }
    return { states, unreadable };
  }

  async function readNotes(link: string): Promise<Notes> {
    return unwritten.get(link) ?? readNotesFile(paths.notes(link));
  }

  async function writeNotes(link: string, notes: Notes): Promise<void> {
    try {
      await ensure(folders.runtime);
      await writeNotesFile(paths.notes(link), notes);
      unwritten.delete(link);
    } catch (error) {
      if (!(error instanceof DiskFailed)) throw error;
      unwritten.set(link, notes);
    }
  }

  /** Serializes changes of notes, because an amendment reads and writes. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const mine = turn.then(work);
    turn = mine.catch(() => {});
    return mine;
  }

  /**
   * Repairs damaged states and open files. Ignores failures: the previous copy stays readable, or
   * the next reader throws.
   */
  async function mend(): Promise<void> {
    await list().catch(expectedError);
    await closeFiles().catch(expectedError);
    for (const link of damaged) {
      const failure = await mendState(paths.state(link)).catch(expectedError);
      if (failure === undefined) damaged.delete(link);
    }
  }

  /** Without networks, removes the locks, then the empty folders of cpn, innermost first. */
  async function clearTraces(): Promise<void> {
    if (await holdsStates(folders.state)) return;
    await removeLock(folders.runtime, passLock);
    for (const kind of [daemonLock, changeLock]) await removeStale(folders.runtime, kind);
    const innermostFirst = [...made, ...known].sort((a, b) => b.length - a.length);
    for (const folder of innermostFirst) await removeFolder(folder);
  }

  /** Runs `work` under a lock other than that of passes, and then removes its file. */
  async function hold<T>(kind: LockKind, work: () => Promise<T>): Promise<T> {
    const release = () => removeLock(folders.runtime, kind);
    const held = () => withLock(folders.runtime, () => finallyDo(work, release), kind, ensure);
    // The lock's own file keeps the folder until then, so the folder is removed last.
    const clear = () => withLock(folders.runtime, clearTraces, { ...passLock, patienceMs: 0 }).catch(expectedError);
    return finallyDo(held, clear);
  }

  return {
    read,
    list,
    get damaged() {
      return new Set([...damaged, ...exposed]);
    },
    watch: (link, signal, onWrite) => watchFile(paths.state(link), signal, onWrite),
    async write(state) {
      await ensure(folders.state);
      const path = paths.state(state.interface);
      const damage = await writeState(path, state);
      if (damage && !damaged.has(state.interface)) onDamage(path, damage);
      damaged.delete(state.interface);
    },
    isOnDisk: () => true,
    readConfig,
    async writeConfig(link, text) {
      await ensure(folders.config);
      const bytes = Buffer.from(text);
      await replaceFile(paths.config(link), bytes);
      configs.expect(paths.config(link), bytes, text, null);
      if (existsSync(paths.aside(link))) await removeFile(paths.aside(link));
    },
    async setConfigAside(link) {
      await moveFile(paths.config(link), paths.aside(link));
      configs.forget(paths.config(link));
    },
    configPath: paths.config,
    readNotes,
    writeNotes: (link, notes) => inTurn(() => writeNotes(link, notes)),
    amendNotes: (link, part) => inTurn(async () => writeNotes(link, { ...(await readNotes(link)), ...part })),
    async writeServing(link, serving) {
      if (serving.size > 0) await ensure(folders.runtime);
      await writeServing(folders.runtime, link, serving);
    },
    clearServing: (link) => clearServing(folders.runtime, link),
    readFormer: () => readFormer(paths.former),
    async writeFormer(former) {
      if (former.memberships.length > 0) await ensure(folders.state);
      else for (const folder of former.folders) known.add(folder);
      await writeFormer(paths.former, former);
    },
    formerPath: paths.former,
    async prepare() {
      for (const folder of [folders.config, folders.state, folders.runtime]) await ensure(folder);
      return [...made];
    },
    async forget(link, others) {
      for (const path of [paths.config(link), paths.aside(link), paths.notes(link)]) await removeFile(path);
      await writeServing(folders.runtime, link, new Map());
      configs.forget(paths.config(link));
      await removeState(paths.state(link));
      damaged.delete(link);
      unwritten.delete(link);
      for (const folder of others) known.add(folder);
    },
    async lock(work) {
      const mendFirst = async () => {
        await mend();
        return work();
      };
      return withLock(folders.runtime, () => finallyDo(mendFirst, clearTraces), passLock, ensure);
    },
    isLocked: () => isLocked(folders.runtime),
    change: (work, waits = true) => hold(waits ? changeLock : { ...changeLock, patienceMs: 0 }, work),
    lockDaemon: (work) => hold(daemonLock, work),
  };
}

function pathsIn({ config, state, runtime }: Folders) {
  return {
    config: (link: string) => join(config, `${link}.conf`),
    aside: (link: string) => join(config, `${link}.conf.deleted`),
    state: (link: string) => join(state, `${link}.json`),
    notes: (link: string) => join(runtime, `${link}.notes.json`),
    former: join(state, formerName),
  };
}

/**
 * Calls back after a file was replaced or removed, until `signal` aborts. Watches the folder, as a
 * new file has another inode. Never calls back without a free inotify watch.
 */
function watchFile(path: string, signal: AbortSignal, onChange: () => void): void {
  if (signal.aborted) return;
  try {
    const watcher = watch(dirname(path), { signal, persistent: false }, (_, name) => {
      if (name === null || name === basename(path)) onChange();
    });
    watcher.on('error', () => watcher.close());
  } catch {
    // Each pass reads the state anyway.
  }
}
