import { rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { UnreadableFile } from '../../core/errors/index.ts';
import { keepCopy, removeFile, replaceFile, settleFile } from '../files/atomic-file.ts';
import { touch } from '../files/disk.ts';
import { type CachedFile, FileCache } from '../files/file-cache.ts';
import { refuseForeign } from '../files/file-trust.ts';
import { listFolder } from '../files/folder.ts';
import type { State } from './state.ts';
import { formatState, parseState, versionOf } from './state-file.ts';
import { stateVersion } from './state-schema.ts';

/** The state that was read for one network. */
export interface StateReading {
  readonly state: State;
  /** The reason why the file was not used. Null unless the state is from the previous copy. */
  readonly damage: UnreadableFile | null;
}

/** The state in a text, or the reason why it has none. */
type CopyVerdict = { readonly state: State } | { readonly damage: UnreadableFile; readonly isNewerVersion: boolean };

/**
 * Reads the state at `path`. If it is damaged, reads its previous copy. Null if neither exists.
 *
 * @throws UnreadableFile if no copy is good, or if the file has a later version, because an earlier
 *   copy would be outdated
 */
export async function readState(path: string): Promise<StateReading | null> {
  const file = await readOwn(path);
  if (file === null) return null;
  const { value: verdict } = file;
  if ('state' in verdict) return { state: verdict.state, damage: null };
  const previous = verdict.isNewerVersion ? null : await readPrevious(path);
  if (previous === null) throw verdict.damage;
  return { state: previous.state, damage: verdict.damage };
}

/**
 * Replaces the state at `path`, atomically. Keeps a good file as the previous copy, and a damaged
 * file as the damaged copy. If the text is the same, only syncs it.
 *
 * @returns the damage of the replaced file, or null
 * @throws UnreadableFile if the existing file has a later version; it stays unchanged
 */
export async function writeState(path: string, state: State): Promise<UnreadableFile | null> {
  const file = await readOwn(path);
  const text = formatState(state);
  const bytes = Buffer.from(text);
  if (file?.text === text) {
    if (!file.isSynced) await settleFile(path);
  } else {
    if (file === null) await setStrayAside(path);
    else if ('damage' in file.value && file.value.isNewerVersion) throw file.value.damage;
    else await keepCopy(path, 'state' in file.value ? previousOf(path) : damagedOf(path), file.text);
    // The rename wakes this process's own watches, which read the file before it is synced.
    files.expect(path, bytes, text, { state }, false);
    await replaceFile(path, bytes);
  }
  files.expect(path, bytes, text, { state });
  return file !== null && 'damage' in file.value ? file.value.damage : null;
}

/** Sets a damaged file aside, and restores its previous copy. Does nothing if the file is good. */
export async function mendState(path: string): Promise<void> {
  const file = await readOwn(path);
  if (file === null || 'state' in file.value || file.value.isNewerVersion) return;
  const previous = await readPrevious(path);
  if (previous === null) return;
  await keepCopy(path, damagedOf(path), file.text);
  // Writes a separate file instead of a hard link: damage to one must not damage the other.
  await replaceFile(path, previous.text);
}

/** Removes the state itself last, so that an interrupted removal can be repeated. */
export async function removeState(path: string): Promise<void> {
  for (const each of copiesOf(path)) await removeFile(each);
  // Also drops the keys of a left network from memory.
  for (const each of copiesOf(path)) files.forget(each);
}

/** Every file that may hold the keys of a state. The state itself comes last. */
export function copiesOf(path: string): string[] {
  return [previousOf(path), damagedOf(path), path];
}

/** True if this folder holds any state, good or damaged. */
export async function holdsStates(folder: string): Promise<boolean> {
  return (await listFolder(folder)).some((name) => /\.json(\.previous)?$/.test(name));
}

async function readOwn(path: string): Promise<CachedFile<CopyVerdict> | null> {
  return files.read(path, (stats) => refuseForeign(path, stats));
}

async function readPrevious(path: string): Promise<{ state: State; text: string } | null> {
  const file = await readOwn(previousOf(path));
  return file && 'state' in file.value ? { state: file.value.state, text: file.text } : null;
}

/**
 * Renames a previous copy whose state was removed by hand. It is no copy of the next network, but
 * may hold the last network's only key.
 */
async function setStrayAside(path: string): Promise<void> {
  const stray = previousOf(path);
  if (!(await listFolder(dirname(path))).includes(basename(stray))) return;
  await touch('rename', stray, () => rename(stray, damagedOf(path)));
}

const files = new FileCache(examine);

function examine(path: string, text: string): CopyVerdict {
  try {
    const state = parseState(text);
    const name = `${state.interface}.json`;
    if (![name, previousOf(name)].includes(basename(path))) throw new Error(`it is the state of ${state.interface}`);
    return { state };
  } catch (error) {
    const version = versionOf(text);
    if (version !== null && version > stateVersion) {
      const remedy = `use the cpn that wrote it; this one reads version ${stateVersion}`;
      return { damage: new UnreadableFile(path, `is of version ${version}`, remedy), isNewerVersion: true };
    }
    const remedy = 'it holds the private key: restore it from a backup, or move it away and join again';
    return { damage: new UnreadableFile(path, 'is damaged', remedy, error), isNewerVersion: false };
  }
}

function previousOf(path: string): string {
  return `${path}.previous`;
}

function damagedOf(path: string): string {
  return `${path}.damaged`;
}
