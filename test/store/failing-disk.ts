/**
 * In a mount namespace of its own: a remembering store on a small disk that fails for a while, as the argument says, and
 * recovers. Prints what was seen, as JSON.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DiskFailed } from '../../src/core/errors/index.ts';
import { fallbackStore } from '../../src/store/fallback-store.ts';
import { fileStore } from '../../src/store/file-store.ts';
import { foldersIn, state } from './samples.ts';

const root = '/mnt';
const [how = ''] = process.argv.slice(2);
const mount = (...args: string[]) => execFileSync('mount', args, { stdio: ['ignore', 'inherit', 'inherit'] });
const folders = foldersIn(root);
const filler = join(root, 'filler');
let clock = 0;

const troubles: Record<string, () => void> = {
  full: () => fill(),
  'read-only': () => mount('-o', 'remount,bind,ro', root),
};
const ends: Record<string, () => void> = {
  full: () => rmSync(filler, { recursive: true }),
  'read-only': () => mount('-o', 'remount,bind,rw', root),
};

mount('-t', 'tmpfs', '-o', 'size=256k,nr_inodes=64', 'tmpfs', root);
mount('--bind', root, root);
const events: string[] = [];
const store = fallbackStore(
  fileStore(folders),
  (event, error) => void events.push(error === undefined ? event : `${event}: ${error.message}`),
  () => clock,
);
await store.prepare();
await store.write({ ...state, enabled: false });
await store.writeConfig('cpn0', 'old');

troubles[how]?.();
const refusals = await Promise.all(
  [
    () => fileStore(folders).write(state),
    () => fileStore(folders).writeConfig('cpn0', 'new'),
    () => fileStore({ ...folders, runtime: join(root, 'other') }).lock(async () => {}),
  ].map((each) => each().then(() => null, describeRefusal)),
);
const claimed = await store.lockDaemon(async () => 'claimed');
await store.lock(async () => {
  await store.write(state);
  await store.writeConfig('cpn0', 'new');
});
const meanwhile = await look();
clock += 10_000;
const unchanged = await look();
ends[how]?.();
clock += 10_000;
const after = await look();
process.stdout.write(JSON.stringify({ refusals, claimed, meanwhile, unchanged, after, events }));

/** What a reader of the store sees, and what is on the disk. */
async function look() {
  const [listed, read, config] = [await store.list(), await store.read('cpn0'), await store.readConfig('cpn0')];
  const disk = fileStore(folders);
  return {
    memory: { listed: listed.states.map((each) => each.enabled), read: read?.enabled, config },
    disk: { read: (await disk.read('cpn0'))?.enabled, config: await disk.readConfig('cpn0') },
  };
}

function describeRefusal(error: unknown): string {
  return error instanceof DiskFailed ? String(error.facts.code) : String(error);
}

/** Leaves neither a block nor a file for anybody. */
function fill(): void {
  mkdirSync(filler);
  for (let size = 65_536, files = 0; files < 100; files += 1) {
    try {
      writeFileSync(join(filler, String(files)), Buffer.alloc(size));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      if (size === 0) return;
      size = size > 4096 ? 4096 : 0;
    }
  }
}
