import { join } from 'node:path';
import { CpnError, DiskFailed, UnreadableFile } from '../core/errors.ts';
import { removeFile, removeLeftovers, replaceFile } from './atomic-file.ts';
import { doThen, foreseen } from './do-then.ts';
import { closeFile, type Guarded, isExposed, type OnExposure, secureFolder } from './exposure.ts';
import { makeFolder, removeFolder } from './folder.ts';
import { KnownTexts } from './known-texts.ts';
import { changeLock, daemonLock, type Kind, passLock, removeLock, removeStale, withLock } from './lock.ts';
import type { Notes } from './notes.ts';
import { readNotesFile, writeNotesFile } from './notes-file.ts';
import type { State } from './state.ts';
import { copiesOf, holdsStates, listLinks, mendState, readState, removeState, writeState } from './state-copies.ts';
import { formatState } from './state-file.ts';
import type { Folders, Listing, Store } from './store.ts';

/** Is told of each state file that is found damaged, once until it is mended; its previous copy stands in for it. */
export type OnDamage = (path: string, cause: UnreadableFile) => void;

/** The store in files; see README for what is where. */
export function fileStore(folders: Folders, onDamage: OnDamage = () => {}, onExposure: OnExposure = () => {}): Store {
  const paths = pathsIn(folders);
  const configs = new KnownTexts();
  const made = new Set<string>();
  /** Folders that any process made for a network which this one has seen. */
  const known = new Set<string>();
  const damaged = new Set<string>();
  /** Networks of whose files something was open to others when they were last read. */
  const exposed = new Set<string>();
  /** Notes that could not be written. */
  const unwritten = new Map<string, Notes>();
  /** The end of the last change of notes. */
  let turn: Promise<void> = Promise.resolve();

  async function ensure(folder: string): Promise<void> {
    for (const each of await makeFolder(folder)) made.add(each);
    await secureFolder(folder, folder === folders.config, onExposure);
  }

  /** Closes to others what they could read; what cannot be closed now is tried again by the next one. */
  async function closeFiles(): Promise<void> {
    const links = await listLinks(folders.state);
    if (links.length > 0) await secureFolder(folders.state, false, onExposure).catch(foreseen);
    for (const file of links.flatMap(guarded)) {
      await removeLeftovers(file.path).catch(foreseen);
      await closeFile(file, onExposure).catch(foreseen);
    }
    exposed.clear();
  }

  function guarded(link: string): Guarded[] {
    const copies = copiesOf(paths.state(link)).map((path) => ({ path, isBelieved: true }));
    return [{ path: paths.config(link), isBelieved: false }, ...copies];
  }

  /** A text that is none of ours stands for what is no file: it is replaced as whatever else differs. */
  async function readConfig(link: string): Promise<string | null> {
    try {
      return await configs.read(paths.config(link));
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
    if (reading && (await isExposed(folders.state, guarded(link)))) exposed.add(link);
    else exposed.delete(link);
    for (const entry of reading?.state.receipt ?? []) if (entry.made === 'folder') known.add(entry.path);
    return reading?.state ?? null;
  }

  async function list(): Promise<Listing> {
    const states: State[] = [];
    const unreadable: Listing['unreadable'][number][] = [];
    for (const link of await listLinks(folders.state)) {
      const reading = await read(link).catch(foreseen);
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

  /** One change of notes after the other: an amendment is a reading and a writing. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const mine = turn.then(work);
    turn = mine.catch(() => {});
    return mine;
  }

  /** What cannot be mended now is read from its previous copy as before, or reported by whoever reads it. */
  async function mend(): Promise<void> {
    await list().catch(foreseen);
    await closeFiles().catch(foreseen);
    for (const link of damaged) {
      const failure = await mendState(paths.state(link)).catch(foreseen);
      if (failure === undefined) damaged.delete(link);
    }
  }

  /** Where no network is left, removes the locks, and the folders that we made, the innermost first, as far as they are empty. */
  async function clearTraces(): Promise<void> {
    if (await holdsStates(folders.state)) return;
    await removeLock(folders.runtime, passLock);
    for (const kind of [daemonLock, changeLock]) await removeStale(folders.runtime, kind);
    const innermostFirst = [...made, ...known].sort((a, b) => b.length - a.length);
    for (const folder of innermostFirst) await removeFolder(folder);
  }

  /** Runs `work` under a lock that stays while others take the one of passes, and leaves no file of it. */
  async function hold<T>(kind: Kind, work: () => Promise<T>): Promise<T> {
    await ensure(folders.runtime);
    const release = () => removeLock(folders.runtime, kind);
    const held = () => withLock(folders.runtime, () => doThen(work, release), kind);
    // Meanwhile its own file keeps the folder from going with the last network.
    const clear = () => withLock(folders.runtime, clearTraces, { ...passLock, patienceMs: 0 }).catch(foreseen);
    return doThen(held, clear);
  }

  return {
    read,
    list,
    get damaged() {
      return new Set([...damaged, ...exposed]);
    },
    async write(state) {
      await ensure(folders.state);
      await writeState(paths.state(state.interface), state);
      damaged.delete(state.interface);
    },
    foresee: formatState,
    isOnDisk: () => true,
    readConfig,
    async writeConfig(link, text) {
      await ensure(folders.config);
      const bytes = Buffer.from(text);
      await replaceFile(paths.config(link), bytes);
      configs.expect(paths.config(link), bytes, text);
    },
    configPath: paths.config,
    readNotes,
    writeNotes: (link, notes) => inTurn(() => writeNotes(link, notes)),
    amendNotes: (link, part) => inTurn(async () => writeNotes(link, { ...(await readNotes(link)), ...part })),
    async prepare() {
      for (const folder of [folders.config, folders.state, folders.runtime]) await ensure(folder);
      return [...made];
    },
    async forget(link, others) {
      for (const path of [paths.config(link), paths.notes(link)]) await removeFile(path);
      configs.forget(paths.config(link));
      await removeState(paths.state(link));
      damaged.delete(link);
      unwritten.delete(link);
      for (const folder of others) known.add(folder);
    },
    async lock(work) {
      await ensure(folders.runtime);
      const mendFirst = async () => {
        await mend();
        return work();
      };
      return withLock(folders.runtime, () => doThen(mendFirst, clearTraces));
    },
    change: (work, waits = true) => hold(waits ? changeLock : { ...changeLock, patienceMs: 0 }, work),
    claim: (work) => hold(daemonLock, work),
  };
}

function pathsIn({ config, state, runtime }: Folders) {
  return {
    config: (link: string) => join(config, `${link}.conf`),
    state: (link: string) => join(state, `${link}.json`),
    notes: (link: string) => join(runtime, `${link}.notes.json`),
  };
}
