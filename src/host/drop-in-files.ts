import { lstat, mkdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CommandFailed, CpnError, DiskFailed, expectCpnError, ResolverNotRestored } from '../core/errors/index.ts';
import { findMark } from '../core/names/drop-in.ts';
import type { DnsFiles } from '../core/reconcile/step.ts';
import { renameInto, syncFolder } from './rename-into.ts';

/** A later comment line of a file that the program has perhaps not read. */
const unread = '# not read yet\n';

/** How a program reads our files. */
export interface Reloader {
  /** False for a program that is stopped, or that started after our file was removed. */
  readonly mayUseFormer: () => Promise<boolean>;
  /** Refuses settings, ours or others, that the program may not start with. */
  readonly check: () => Promise<unknown>;
  readonly reload: () => Promise<unknown>;
  /** Starts it again after a reload that failed. */
  readonly restore: () => Promise<unknown>;
}

type Texts = DnsFiles['texts'];

/**
 * Writes our files, and lets the program read them. If that fails, the files get their former state
 * back. The program is touched only after all its settings were checked, those of others included:
 * without its resolver, the host resolves nothing.
 *
 * @throws CommandFailed, MissingTool, DiskFailed
 */
export async function writeDropIns(texts: Texts, reloader: Reloader | null): Promise<void> {
  const before: Texts = Object.fromEntries(
    await Promise.all(Object.keys(texts).map(async (path) => [path, await readOwn(path)] as const)),
  );
  await reloader?.check();
  let isTouched = false;
  try {
    // An interrupted step is planned again, because this text differs from the planned one.
    await placeAll(mapTexts(texts, (text) => text + unread));
    await reloader?.check();
    isTouched = true;
    await reloader?.reload();
    await placeAll(texts);
  } catch (error) {
    const failures = [
      await attempt(() => placeAll(before)),
      isTouched && reloader !== null ? await attempt(reloader.restore) : null,
    ].filter((failure) => failure !== null);
    throw failures.length > 0 && error instanceof CpnError ? new ResolverNotRestored(error, failures) : error;
  }
}

/**
 * Removes our files, and lets the program read that. A program that must not be restarted is
 * left as it is: its check refuses.
 *
 * @throws CommandFailed, MissingTool, DiskFailed, also after the removal if it was not read
 */
export async function removeDropIns({ texts }: Pick<DnsFiles, 'texts'>, reloader: Reloader | null): Promise<void> {
  for (const path of Object.keys(texts)) await readOwn(path);
  await placeAll(texts);
  if (reloader === null || !(await reloader.mayUseFormer())) return;
  const failure = await attempt(() => reloader.check().then(reloader.reload));
  if (failure === null) return;
  const paths = Object.keys(texts).join(', ');
  const problem = `${paths} is removed, but in use until the program restarts: ${failure}`;
  throw new CommandFailed('reading the settings of DNS again', null, problem);
}

/** Returns why it failed; null if it did not. */
async function attempt(work: () => Promise<unknown>): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (error) {
    return expectCpnError(error).message;
  }
}

function mapTexts(texts: Texts, map: (text: string) => string): Texts {
  return Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, text === null ? null : map(text)]));
}

/** Null without the file. @throws CommandFailed for a file of another program */
async function readOwn(path: string): Promise<string | null> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return null;
  const text = stats.isFile() ? await readFile(path, 'latin1') : '';
  if (findMark(text) === null) throw new CommandFailed(`writing ${path}`, null, `${path} is not a file of cpn`);
  return text;
}

async function placeAll(texts: Texts): Promise<void> {
  for (const [path, text] of Object.entries(texts)) {
    try {
      await place(path, text);
    } catch (error) {
      if (error instanceof CpnError) throw error;
      throw new DiskFailed('write', path, error as NodeJS.ErrnoException);
    }
  }
}

/** Programs pass over names that begin with a dot. */
async function place(path: string, text: string | null): Promise<void> {
  if (text === null) {
    await rm(path, { force: true });
    return syncFolder(path);
  }
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  const temporary = join(dirname(path), `.${basename(path)}.tmp`);
  // The resolver may read it as its own user.
  const owner = { mode: 0o644, uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  await renameInto(path, text, { temporary, owner, isCurrent: async () => true });
}
