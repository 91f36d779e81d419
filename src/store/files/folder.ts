import { closeSync, constants, fsync, openSync, readdirSync, statSync } from 'node:fs';
import { mkdir, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { DiskFailed } from '../../core/errors/index.ts';
import { codeOf, ignore, touch } from './disk.ts';

/** The names in a folder. Empty if it does not exist. @throws DiskFailed if unreadable */
export async function listFolder(path: string): Promise<string[]> {
  try {
    return await touch('read', path, async () => readdirSync(path), ['ENOENT']);
  } catch (error) {
    return ignore(error, ['ENOENT'], []);
  }
}

/** The interfaces that have a state in this folder. */
export async function listLinks(folder: string): Promise<string[]> {
  const states = (await listFolder(folder)).filter((name) => name.endsWith('.json'));
  return states.map((name) => name.slice(0, -'.json'.length)).sort();
}

/**
 * Creates a folder for its owner alone, durably. Returns the new folders, outermost first. Not by
 * Node's recursive mkdir, which reports ENOENT on a read-only disk.
 *
 * @throws DiskFailed
 */
export async function makeFolder(path: string): Promise<string[]> {
  if (await isFolder(path)) return [];
  const above = dirname(path);
  const made = above === path ? [] : await makeFolder(above);
  try {
    await touch('mkdir', path, () => mkdir(path, 0o700), ['EEXIST']);
  } catch (error) {
    if (await isFolder(path)) return made;
    throw codeOf(error) === null ? error : new DiskFailed('make the folder', path, error as NodeJS.ErrnoException);
  }
  await syncFolder(above);
  return [...made, path];
}

/** Removes a folder if it is empty and no mount point. */
export async function removeFolder(path: string): Promise<void> {
  const allow = ['ENOTEMPTY', 'ENOENT', 'EBUSY'];
  await touch('rmdir', path, () => rmdir(path), allow).catch((error) => ignore(error, allow, undefined));
}

/** fsync(2), which waits for the disk, and so is asynchronous: other work may run meanwhile. */
export const syncFile = promisify(fsync);

/** Makes renames, links and removals survive a power cut. @throws DiskFailed except for `allow` */
export async function syncFolder(path: string, allow: readonly string[] = []): Promise<void> {
  const sync = async () => {
    const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await syncFile(folder);
    } finally {
      closeSync(folder);
    }
  };
  await touch('fsync', path, sync, allow).catch((error) => ignore(error, allow, undefined));
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return await touch('read', path, async () => statSync(path).isDirectory(), ['ENOENT']);
  } catch (error) {
    return ignore(error, ['ENOENT'], false);
  }
}
