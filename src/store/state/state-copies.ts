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

/** The state that was read of one network. */
export interface StateReading {
  readonly state: State;
  /** Why the file was not used, when the state is that of the previous copy. */
  readonly damage: UnreadableFile | null;
}

/** The state in a text, or why there is none. */
type CopyVerdict = { readonly state: State } | { readonly damage: UnreadableFile; readonly isNewerVersion: boolean };

/**
 * Reads the state at `path`, or where that is damaged its previous copy; null when there is none.
 *
 * @throws UnreadableFile when no copy is good, or the file is of a later version: then an earlier copy would be a step back
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
 * Replaces the state at `path`, atomically. What was there is kept: if it was good, as the previous copy; if it was damaged, as
 * such. The same text is not written again, only synced.
 *
 * @returns what was damaged there; null for nothing
 * @throws UnreadableFile when what is there is of a later version: it is left as it is
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
    // The rename wakes the watches of this very process, which read the file before it is synced.
    files.expect(path, bytes, text, { state }, false);
    await replaceFile(path, bytes);
  }
  files.expect(path, bytes, text, { state });
  return file !== null && 'damage' in file.value ? file.value.damage : null;
}

/** Sets a damaged file aside, and puts its previous copy in its place. Does nothing where the file is good. */
export async function mendState(path: string): Promise<void> {
  const file = await readOwn(path);
  if (file === null || 'state' in file.value || file.value.isNewerVersion) return;
  const previous = await readPrevious(path);
  if (previous === null) return;
  await keepCopy(path, damagedOf(path), file.text);
  // A file of its own, and no second name of the copy: damage to one must not damage the other.
  await replaceFile(path, previous.text);
}

/** Removes all copies; the state itself last, so that an interrupted removal can be repeated. */
export async function removeState(path: string): Promise<void> {
  for (const each of copiesOf(path)) await removeFile(each);
  // Keys of a network that was left are not kept in memory either.
  for (const each of copiesOf(path)) files.forget(each);
}

/** Every file that may hold the keys of a state; that of the state itself last. */
export function copiesOf(path: string): string[] {
  return [previousOf(path), damagedOf(path), path];
}

/** Whether this folder holds a state of any kind, good or not. */
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

/** A copy whose state was removed by hand is no copy of the next network; it may hold the only key of the last one. */
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
