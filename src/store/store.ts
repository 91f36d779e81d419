import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { UnreadableFile } from '../core/errors.ts';
import { makeFolder, readText, removeFile, replaceFile } from './atomic-file.ts';
import { removeLock, withLock } from './lock.ts';
import type { State } from './state.ts';
import { formatState, parseState, stateVersion, versionOf } from './state-file.ts';

/** The folders of one host; many hosts can live on one machine. */
export interface Folders {
  readonly config: string;
  readonly state: string;
  readonly runtime: string;
}

/** How the last try to read the network's map went. */
export interface Sync {
  /** ISO 8601; null when there was none yet. */
  readonly lastSuccess: string | null;
  readonly error: string | null;
}

/** What a host keeps on disk. */
export interface Store {
  /** The states of all networks, in the order of their interfaces' names. */
  list(): Promise<State[]>;
  read(link: string): Promise<State | null>;
  write(state: State): Promise<void>;
  readConfig(link: string): Promise<string | null>;
  writeConfig(link: string, text: string): Promise<void>;
  configPath(link: string): string;
  readSync(link: string): Promise<Sync>;
  writeSync(link: string, sync: Sync): Promise<void>;
  /** Makes the folders; returns those that this process had to make, for the receipt. */
  prepare(): Promise<readonly string[]>;
  /** Removes all that is kept of one network; the folders named go with the last network, if nothing of others is in them. */
  forget(link: string, folders: readonly string[]): Promise<void>;
  /** Runs `work` while no other process changes this host; where no network is left afterwards, nothing of ours stays. */
  lock<T>(work: () => Promise<T>): Promise<T>;
}

/** The store in files; see README for what is where. */
export function fileStore(folders: Folders): Store {
  const paths = pathsIn(folders);
  const made: string[] = [];
  const ensure = async (folder: string) => void made.push(...(await makeFolder(folder)));
  const read = async (link: string) => {
    const text = await readText(paths.state(link));
    return text === null ? null : decode(paths.state(link), text);
  };
  return {
    read,
    async list() {
      const states = await Promise.all((await listLinks(folders.state)).map(read));
      return states.filter((state) => state !== null);
    },
    async write(state) {
      await ensure(folders.state);
      await replaceFile(paths.state(state.interface), formatState(state));
    },
    readConfig: (link) => readText(paths.config(link)),
    async writeConfig(link, text) {
      await ensure(folders.config);
      await replaceFile(paths.config(link), text);
    },
    configPath: paths.config,
    async readSync(link) {
      const text = await readText(paths.sync(link));
      return text === null ? { lastSuccess: null, error: null } : (JSON.parse(text) as Sync);
    },
    async writeSync(link, sync) {
      await ensure(folders.runtime);
      await replaceFile(paths.sync(link), JSON.stringify(sync));
    },
    async prepare() {
      for (const folder of [folders.config, folders.state, folders.runtime]) await ensure(folder);
      return made;
    },
    async forget(link, others) {
      await Promise.all([paths.config(link), paths.sync(link)].map(removeFile));
      await removeFile(paths.state(link));
      made.unshift(...others);
    },
    async lock(work) {
      await ensure(folders.runtime);
      return withLock(folders.runtime, async () => {
        try {
          return await work();
        } finally {
          if ((await listLinks(folders.state)).length === 0) await removeTraces(folders.runtime, made);
        }
      });
    },
  };
}

function pathsIn({ config, state, runtime }: Folders) {
  return {
    config: (link: string) => join(config, `${link}.conf`),
    state: (link: string) => join(state, `${link}.json`),
    sync: (link: string) => join(runtime, `${link}.sync.json`),
  };
}

/** The interfaces of which there is a state. */
async function listLinks(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  const states = names.filter((name) => name.endsWith('.json'));
  return states.map((name) => name.slice(0, -'.json'.length)).sort();
}

/** Removes the lock, and the folders that we made, the innermost first, as far as they are empty. */
async function removeTraces(runtime: string, made: readonly string[]): Promise<void> {
  await removeLock(runtime);
  const innermostFirst = [...new Set(made)].sort((a, b) => b.length - a.length);
  for (const folder of innermostFirst) await rmdir(folder).catch(ignoreInUse);
}

function decode(path: string, text: string): State {
  const version = versionOf(text);
  if (version !== null && version > stateVersion) {
    const remedy = `use the cpn that wrote it; this one reads version ${stateVersion}`;
    throw new UnreadableFile(path, `is of version ${version}`, remedy);
  }
  try {
    return parseState(text);
  } catch (error) {
    throw new UnreadableFile(
      path,
      'is damaged',
      'it holds the private key: restore it from a backup, or move it away and join again',
      error,
    );
  }
}

function ignoreInUse(error: unknown): void {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOTEMPTY' && code !== 'ENOENT' && code !== 'EBUSY') throw error;
}
