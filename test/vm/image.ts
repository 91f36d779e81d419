import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { buildImage, listFiles, units } from './build-image.ts';
import { newestKernel } from './kernel.ts';

/** A Debian 12 with systemd, all that the package depends on, and the services of `guest/units`: as a disk to boot, and as a tar of its files. */
export interface Image {
  readonly disk: string;
  readonly files: string;
  readonly kernel: string;
  readonly initrd: string;
}

/** What a clone is too short-lived for: outside of it, so that continuous integration finds it again. */
export const cache =
  process.env.CPN_VM_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'cpn-vm');

/** The folder of apt's package lists. */
const aptLists = '/var/lib/apt/lists';

/** The image of these sources and this Node, from the cache. */
export function findImage(): Image {
  const folder = locateImage(imageName());
  if (folder === undefined) throw new Error(`${cache} has no image of these sources; run scripts/setup vm`);
  return imageIn(folder);
}

/** Builds the image where it is missing, or apt has a newer kernel, and removes older images. */
export function prepareImage(print: (text: string) => void): void {
  const name = imageName();
  const known = locateImage(name);
  if (known !== undefined && hasNewestKernel(known)) return;
  const obstacle = whyNot();
  if (obstacle !== null) {
    print(`scripts/vm-test cannot run here: ${obstacle}`);
    return;
  }
  print(`building an image in ${cache}`);
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, 'building-'));
  try {
    const built = buildImage(work);
    for (const old of readdirSync(cache)) {
      if (old.startsWith('image-')) rmSync(join(cache, old), { recursive: true, force: true });
    }
    renameSync(join(work, 'image'), join(cache, `${name}${built}`));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The beginning of the name of these sources' image; the version of its kernel follows. */
function imageName(): string {
  return `image-${hashSources()}-`;
}

function locateImage(name: string): string | undefined {
  if (!existsSync(cache)) return undefined;
  const found = readdirSync(cache).find((file) => file.startsWith(name));
  return found && join(cache, found);
}

/** Queries apt, which takes a second, only where its lists changed since the last time. */
function hasNewestKernel(folder: string): boolean {
  if (existsSync(aptLists) && statSync(aptLists).mtimeMs <= statSync(folder).mtimeMs) return true;
  const newest = newestKernel();
  if (newest !== null && !folder.endsWith(`-${newest}`)) return false;
  const now = new Date();
  utimesSync(folder, now, now);
  return true;
}

/** Why this machine cannot run the scenario; null where it can. */
export function whyNot(): string | null {
  if (process.arch !== 'x64') return `the machine is an x86-64 one, and this is ${process.arch}`;
  if (process.getuid?.() !== 0) return 'building the image takes root';
  return existsSync('/usr/bin/apt-get') ? null : 'the image is fetched with apt-get';
}

function imageIn(folder: string): Image {
  const at = (file: string) => join(folder, file);
  return { disk: at('disk.img'), files: at('files.tar'), kernel: at('vmlinuz'), initrd: at('initrd') };
}

function hashSources(): string {
  const hash = createHash('sha256').update(process.version);
  const sources = ['build-image.ts', 'kernel.ts', 'initrd.ts', 'guest/start'];
  for (const file of sources) hash.update(readFileSync(join(import.meta.dirname, file)));
  for (const file of listFiles(units)) hash.update(file).update(readFileSync(join(units, file)));
  return hash.digest('hex').slice(0, 16);
}
