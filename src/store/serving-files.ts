import { chmodSync, lstatSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Prefix } from '../core/net/cidr.ts';
import { readText, removeFile, replaceFile } from './files/atomic-file.ts';
import { ignore, touch } from './files/disk.ts';
import { listFolder, makeFolder, removeFolder } from './files/folder.ts';

/** Permissions that other users need: to list a folder, and to pass through one. */
const open = 0o755;
const passable = 0o711;

/**
 * Files for other programs, such as keepalived: `serving/IF/PREFIX` in the runtime folder has `1`
 * if this host is the connector in service for the route, else `0`. They are the only files that
 * other users can read. A reader sees a whole line: each change is a rename. Restores what another
 * program removed, wrote, or replaced by a symbolic link.
 *
 * @throws DiskFailed
 */
export async function writeServing(
  runtime: string,
  link: string,
  serving: ReadonlyMap<Prefix, boolean>,
): Promise<void> {
  const folder = folderOf(runtime, link);
  for (const each of [join(runtime, 'serving'), folder]) await removeLink(each);
  const wanted = new Map([...serving].map(([route, isServing]) => [fileNameOf(route), isServing]));
  for (const name of await listFolder(folder)) if (!wanted.has(name)) await removeFile(join(folder, name));
  if (wanted.size === 0) return removeEmpty(runtime, link);
  await makeFolder(folder);
  for (const each of [join(runtime, 'serving'), folder]) await openFolder(each, open);
  await openFolder(runtime, passable);
  for (const [name, isServing] of wanted) await writeValue(join(folder, name), isServing);
}

/** Writes `0` to each file of a network. @throws DiskFailed */
export async function clearServing(runtime: string, link: string): Promise<void> {
  const folder = folderOf(runtime, link);
  for (const each of [join(runtime, 'serving'), folder]) await removeLink(each);
  for (const name of await listFolder(folder)) await writeValue(join(folder, name), false);
}

/** A prefix has a slash, which no file name can have. */
function fileNameOf(route: Prefix): string {
  return route.replace('/', '_');
}

function folderOf(runtime: string, link: string): string {
  return join(runtime, 'serving', link);
}

async function writeValue(path: string, isServing: boolean): Promise<void> {
  const text = isServing ? '1\n' : '0\n';
  const isSame = !(await isLink(path)) && (await readText(path)) === text;
  if (!isSame) await replaceFile(path, text, { durable: false, mode: 0o644 });
}

async function removeLink(path: string): Promise<void> {
  if (await isLink(path)) await touch('unlink', path, async () => rmSync(path));
}

async function isLink(path: string): Promise<boolean> {
  const read = async () => lstatSync(path).isSymbolicLink();
  return touch('read', path, read, ['ENOENT']).catch((error) => ignore(error, ['ENOENT'], false));
}

async function openFolder(path: string, mode: number): Promise<void> {
  const before = await touch('read', path, async () => statSync(path).mode & 0o7777);
  if ((before | mode) !== before) await touch('write', path, async () => chmodSync(path, before | mode));
}

async function removeEmpty(runtime: string, link: string): Promise<void> {
  await removeFolder(folderOf(runtime, link));
  await removeFolder(join(runtime, 'serving'));
}
