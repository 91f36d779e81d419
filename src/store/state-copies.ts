import { rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { UnreadableFile } from '../core/errors.ts';
import { keepCopy, removeFile, replaceFile, settleFile } from './atomic-file.ts';
import { touch } from './disk.ts';
import { refuseForeign } from './exposure.ts';
import { listFolder } from './folder.ts';
import { KnownTexts } from './known-texts.ts';
import type { State } from './state.ts';
import { formatState, parseState, versionOf } from './state-file.ts';
import { stateVersion } from './state-schema.ts';

/** What was read of one network. */
export interface Reading {
  readonly state: State;
  /** What is wrong with the file, when the state is that of the previous copy. */
  readonly damage: UnreadableFile | null;
}

/** What a text turned out to be. */
type Verdict = { readonly state: State } | { readonly damage: UnreadableFile; readonly later: boolean };

/**
 * Reads the state at `path`, or where that is damaged its previous copy; null when there is none.
 *
 * @throws UnreadableFile when no copy is good, or the file is of a later version: then an earlier copy would be a step back
 */
export async function readState(path: string): Promise<Reading | null> {
  const text = await readOwn(path);
  if (text === null) return null;
  const verdict = judge(path, text);
  if ('state' in verdict) return { state: verdict.state, damage: null };
  const previous = verdict.later ? null : await readPrevious(path);
  if (previous === null) throw verdict.damage;
  return { state: previous.state, damage: verdict.damage };
}

/**
 * Replaces the state at `path`, which is whole at every instant. What was there is kept: if it was good, as the previous
 * copy; if it was damaged, as what it is. What is there already is not written again: it is seen to that it stays.
 *
 * @throws UnreadableFile when what is there is of a later version: it is left as it is
 */
export async function writeState(path: string, state: State): Promise<void> {
  const text = await readOwn(path);
  const written = formatState(state);
  const known = judged.get(path);
  if (text === written) {
    if (known?.text !== written || !known.isSaved) await settleFile(path);
    remember(path, { text, verdict: { state }, isSaved: true });
    return;
  }
  if (text === null) {
    await setStrayAside(path);
  } else {
    const verdict = judge(path, text);
    if ('damage' in verdict && verdict.later) throw verdict.damage;
    await keepCopy(path, 'state' in verdict ? previousOf(path) : damagedOf(path), text);
  }
  const bytes = Buffer.from(written);
  await replaceFile(path, bytes);
  texts.expect(path, bytes, written);
  remember(path, { text: written, verdict: { state }, isSaved: true });
}

/** Sets a damaged file aside, and puts its previous copy in its place. Does nothing where there is nothing to mend. */
export async function mendState(path: string): Promise<void> {
  const text = await readOwn(path);
  if (text === null) return;
  const verdict = judge(path, text);
  if ('state' in verdict || verdict.later) return;
  const previous = await readPrevious(path);
  if (previous === null) return;
  await keepCopy(path, damagedOf(path), text);
  // A file of its own, and no second name of the copy: what befalls one must not befall the other.
  await replaceFile(path, previous.text);
}

/** Removes all copies; the state itself last, so that whoever is interrupted finds something left to remove. */
export async function removeState(path: string): Promise<void> {
  for (const each of copiesOf(path)) await removeFile(each);
  // Keys of a network that was left are not kept in memory either.
  for (const each of copiesOf(path)) {
    texts.forget(each);
    judged.delete(each);
  }
}

/** Every file that may hold the keys of a state; that of the state itself last. */
export function copiesOf(path: string): string[] {
  return [previousOf(path), damagedOf(path), path];
}

/** The interfaces that have a state in this folder. */
export async function listLinks(folder: string): Promise<string[]> {
  const states = (await listFolder(folder)).filter((name) => name.endsWith('.json'));
  return states.map((name) => name.slice(0, -'.json'.length)).sort();
}

/** Whether this folder holds a state of any kind, good or not. */
export async function holdsStates(folder: string): Promise<boolean> {
  return (await listFolder(folder)).some((name) => /\.json(\.previous)?$/.test(name));
}

async function readOwn(path: string): Promise<string | null> {
  return texts.read(path, (stats) => refuseForeign(path, stats));
}

async function readPrevious(path: string): Promise<{ state: State; text: string } | null> {
  const text = await readOwn(previousOf(path));
  if (text === null) return null;
  const verdict = judge(path, text);
  return 'state' in verdict ? { state: verdict.state, text } : null;
}

/** A copy whose state somebody removed by hand is no copy of the next network; it may hold the only key of the last one. */
async function setStrayAside(path: string): Promise<void> {
  const stray = previousOf(path);
  if (!(await listFolder(dirname(path))).includes(basename(stray))) return;
  await touch('rename', stray, () => rename(stray, damagedOf(path)));
}

const texts = new KnownTexts();

interface Judged {
  readonly text: string;
  readonly verdict: Verdict;
  /** The disk has it for good; what was only read may be lost yet. */
  readonly isSaved: boolean;
}

/** Verdicts on what was read or written last, by path: the same text is the same state, and to read that of 5,000 peers takes 0.1 s. */
const judged = new Map<string, Judged>();
const mostJudged = 64;

function judge(path: string, text: string): Verdict {
  const known = judged.get(path);
  if (known?.text === text) return known.verdict;
  const verdict = examine(path, text);
  remember(path, { text, verdict, isSaved: false });
  return verdict;
}

function remember(path: string, entry: Judged): void {
  if (judged.size >= mostJudged) judged.clear();
  judged.set(path, entry);
}

function examine(path: string, text: string): Verdict {
  try {
    const state = parseState(text);
    const name = `${state.interface}.json`;
    if (name !== basename(path)) throw new Error(`it is the state of ${state.interface}`);
    return { state };
  } catch (error) {
    const version = versionOf(text);
    if (version !== null && version > stateVersion) {
      const remedy = `use the cpn that wrote it; this one reads version ${stateVersion}`;
      return { damage: new UnreadableFile(path, `is of version ${version}`, remedy), later: true };
    }
    const remedy = 'it holds the private key: restore it from a backup, or move it away and join again';
    return { damage: new UnreadableFile(path, 'is damaged', remedy, error), later: false };
  }
}

function previousOf(path: string): string {
  return `${path}.previous`;
}

function damagedOf(path: string): string {
  return `${path}.damaged`;
}
