import { chmod, chown, lstat, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NotOurs, UnreadableFile } from '../../../src/core/errors/index.ts';
import { fileStore } from '../../../src/store/file-store.ts';
import { refuseForeign, secureFolder } from '../../../src/store/files/file-trust.ts';
import type { FormerMembership } from '../../../src/store/former-networks.ts';
import type { Folders, HostStore } from '../../../src/store/store.ts';
import { memory } from '../../lab/memory.ts';
import { foldersIn, state } from '../samples.ts';

let root: string;
let folders: Folders;
let store: HostStore;
let warnings: string[];
beforeEach(async () => {
  root = await mkdtemp(join(memory, 'cpn-modes-'));
  folders = foldersIn(root);
  warnings = [];
  store = fileStore(folders, undefined, (trouble) => warnings.push(trouble));
  await store.write({ ...state, enabled: false });
  await store.write(state);
  await store.writeConfig('cpn0', 'text');
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(root, { recursive: true, force: true });
});

const modeOf = async (path: string) => (await lstat(path)).mode & 0o7777;
const statePath = () => join(folders.state, 'cpn0.json');

/** Modes by what they let others do with a file of ours. */
const kept = [0o600, 0o400, 0o700];
const readable = [0o640, 0o604, 0o610, 0o601, 0o644, 0o444];
const writable = [0o620, 0o602, 0o660, 0o606, 0o666];

describe('a state', () => {
  it.each(kept)('with mode %o is read, and keeps it', async (mode) => {
    await chmod(statePath(), mode);
    expect(await store.lock(() => store.read('cpn0'))).toEqual(state);
    expect([await modeOf(statePath()), [...store.damaged], warnings]).toEqual([mode, [], []]);
  });

  it.each(readable)('with mode %o is read, and closed by the next lock', async (mode) => {
    await chmod(statePath(), mode);
    expect(await store.read('cpn0')).toEqual(state);
    expect([...store.damaged]).toEqual(['cpn0']);
    await store.lock(async () => {});
    expect([await modeOf(statePath()), [...store.damaged], warnings.length]).toEqual([0o600, [], 1]);
  });

  it.each(writable)('with mode %o is refused, and stays as it is', async (mode) => {
    await chmod(statePath(), mode);
    await store.lock(() => expect(store.read('cpn0')).rejects.toThrow(UnreadableFile));
    expect([await modeOf(statePath()), warnings]).toEqual([mode, []]);
  });
});

it.each([...readable, ...writable])('a wg-quick file with mode %o is closed by the next lock', async (mode) => {
  await chmod(store.configPath('cpn0'), mode);
  await store.read('cpn0');
  expect([...store.damaged]).toEqual(['cpn0']);
  await store.lock(async () => {});
  expect([await modeOf(store.configPath('cpn0')), [...store.damaged], warnings.length]).toEqual([0o600, [], 1]);
});

it.each(['.previous', '.damaged'])('a copy of the state, %s, is closed by the next lock', async (suffix) => {
  const path = `${statePath()}${suffix}`;
  await writeFile(path, 'key');
  await chmod(path, 0o644);
  await store.read('cpn0');
  expect([...store.damaged]).toEqual(['cpn0']);
  await store.lock(async () => {});
  expect([await modeOf(path), [...store.damaged]]).toEqual([0o600, []]);
});

it('the record of networks that were left is closed by the next lock, also without a joined network', async () => {
  await store.writeFormer({ folders: [], memberships: [{ interface: 'cpn9' } as FormerMembership].slice(1) });
  await writeFile(store.formerPath, '{}');
  for (const links of [['cpn0'], []]) {
    if (links.length === 0) await store.forget('cpn0', []);
    await chmod(store.formerPath, 0o644);
    await store.lock(async () => {});
    expect(await modeOf(store.formerPath)).toBe(0o600);
  }
});

it('a link in the place of the wg-quick file is not open: its mode is that of every link', async () => {
  await rm(store.configPath('cpn0'));
  await symlink('/dev/null', store.configPath('cpn0'));
  await store.read('cpn0');
  expect([...store.damaged]).toEqual([]);
});

const folderModes: readonly [number, number][] = [
  [0o700, 0o700],
  [0o755, 0o755],
  [0o720, 0o700],
  [0o702, 0o700],
  [0o775, 0o755],
  [0o777, 0o755],
  [0o2775, 0o2755],
  [0o4777, 0o4755],
  [0o1777, 0o1777],
  [0o1770, 0o1770],
];

describe.each(folderModes)('a folder with mode %o', (mode, after) => {
  const isOpen = mode !== after;

  it(isOpen ? 'is closed to the writes of others, with a warning' : 'keeps it', async () => {
    await chmod(root, mode);
    await secureFolder(root, false, (trouble) => warnings.push(trouble));
    expect([await modeOf(root), warnings.length]).toEqual([after, isOpen ? 1 : 0]);
  });

  it('that other programs share keeps it, with a warning where others can write there', async () => {
    await chmod(root, mode);
    await secureFolder(root, true, (trouble) => warnings.push(trouble));
    expect([await modeOf(root), warnings.length]).toEqual([mode, isOpen ? 1 : 0]);
  });

  it('of states shows as damage only where the next lock closes it', async () => {
    await chmod(folders.state, mode);
    await store.read('cpn0');
    expect([...store.damaged]).toEqual(isOpen ? ['cpn0'] : []);
    await store.lock(async () => {});
    expect([await modeOf(folders.state), [...store.damaged]]).toEqual([after, []]);
  });
});

it.each([0o077, 0o022, 0o000])('the files of a lock are for their owner alone with the umask %o', async (mask) => {
  const before = process.umask(mask);
  try {
    await store.lock(async () => {
      for (const name of ['lock', 'lock.pid']) expect(await modeOf(join(folders.runtime, name))).toBe(0o600);
    });
  } finally {
    process.umask(before);
  }
});

/** Only root can give a file away. */
describe.runIf(process.geteuid?.() === 0)('for a user', () => {
  beforeEach(() => void vi.spyOn(process as { geteuid: () => number }, 'geteuid').mockReturnValue(4242));

  it.each([
    [0, true],
    [4242, true],
    [4243, false],
  ])('what belongs to user %i is trusted: %s', async (uid, isTrusted) => {
    await chown(statePath(), uid, 0);
    const stats = await lstat(statePath());
    if (isTrusted) refuseForeign(statePath(), stats);
    else expect(() => refuseForeign(statePath(), stats)).toThrow(`belongs to user ${uid}`);
    const folder = join(root, 'folder');
    await mkdir(folder);
    await chown(folder, uid, 0);
    const secured = secureFolder(folder, false, () => {}).then(
      () => null,
      (error: unknown) => error,
    );
    if (isTrusted) expect(await secured).toBeNull();
    else expect(await secured).toBeInstanceOf(NotOurs);
  });

  it('a wg-quick file of another one shows as damage', async () => {
    await chown(store.configPath('cpn0'), 4243, 0);
    await store.read('cpn0');
    expect([...store.damaged]).toEqual(['cpn0']);
  });
});
