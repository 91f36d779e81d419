import { spawnSync } from 'node:child_process';
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { DiskFailed, NotOurs, UnreadableFile } from '../../../src/core/errors/index.ts';
import { fileStore } from '../../../src/store/file-store.ts';
import { readLogin, writeLogin } from '../../../src/store/login-file.ts';
import { formatState } from '../../../src/store/state/state-file.ts';
import type { Folders, HostStore } from '../../../src/store/store.ts';
import { foldersIn, state } from '../samples.ts';

let root: string;
let folders: Folders;
let store: HostStore;
let warnings: string[];
/** What an attacker would have us read or write. */
let target: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'cpn-exposure-'));
  folders = foldersIn(root);
  warnings = [];
  store = fileStore(folders, undefined, (trouble) => warnings.push(trouble));
  target = join(root, 'passwd');
  await writeFile(target, 'root:x:0:0\n', { mode: 0o644 });
  await store.lock(() => store.write(state));
  await store.writeConfig('cpn0', 'text');
});

afterEach(() => rm(root, { recursive: true, force: true }));

const modeOf = async (path: string) => ((await lstat(path)).mode & 0o7777).toString(8);
const statePath = () => join(folders.state, 'cpn0.json');
const failure = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => 'done',
    (error: unknown) => error,
  );

async function expectTargetUnharmed(): Promise<void> {
  expect([await readFile(target, 'utf8'), await modeOf(target)]).toEqual(['root:x:0:0\n', '644']);
}

/** What another user may put in the place of a file, by its kind. */
const impostors: Record<string, (path: string) => Promise<unknown>> = {
  'a link to a file': (path) => symlink(target, path),
  'a link that dangles': (path) => symlink(join(root, 'made-through-a-link'), path),
  'a link to itself': (path) => symlink(path, path),
  'a link to a device': (path) => symlink('/dev/zero', path),
  'a pipe': async (path) => expect(spawnSync('mkfifo', [path]).status).toBe(0),
  'a folder': (path) => mkdir(path),
};

describe.each(Object.entries(impostors))('%s', (what, put) => {
  const replaced = async (path: string) => {
    await rm(path, { force: true });
    await put(path);
  };

  afterEach(async () => {
    await expectTargetUnharmed();
    expect(await readdir(root)).not.toContain('made-through-a-link');
  });

  it('in the place of a state is refused by its path, and stays', async () => {
    await replaced(statePath());
    const before = await lstat(statePath());
    for (const attempt of [() => store.read('cpn0'), () => store.lock(() => store.write(state))]) {
      const error = await failure(attempt());
      expect([UnreadableFile, DiskFailed].some((kind) => error instanceof kind)).toBe(true);
      expect(String(error)).toContain(statePath());
    }
    expect((await store.list()).unreadable).toMatchObject([{ interface: 'cpn0' }]);
    expect((await lstat(statePath())).ino).toBe(before.ino);
  });

  it('in the place of the wg-quick file is replaced', async () => {
    const path = store.configPath('cpn0');
    await replaced(path);
    const isFolder = what === 'a folder';
    if (!isFolder) expect(await store.readConfig('cpn0')).toBe('');
    const error = await failure(store.lock(() => store.writeConfig('cpn0', 'new')));
    if (isFolder) return expect(String(error)).toContain(`cannot replace ${path}`);
    expect(await readFile(path, 'utf8')).toBe('new');
    expect(await modeOf(path)).toBe('600');
  });

  it('in the place of the notes counts as no notes', async () => {
    const path = join(folders.runtime, 'cpn0.notes.json');
    await mkdir(folders.runtime, { recursive: true });
    await replaced(path);
    const { troubles } = await store.readNotes('cpn0');
    expect(troubles).toEqual([]);
    await store.amendNotes('cpn0', { troubles: ['one'] });
    expect((await store.readNotes('cpn0')).troubles).toEqual(['one']);
  });

  it('in the place of the lock is refused by its path', async () => {
    const path = join(folders.runtime, 'lock');
    await mkdir(folders.runtime, { recursive: true });
    await replaced(path);
    const error = await failure(store.lock(async () => 'worked'));
    expect(error).toBeInstanceOf(NotOurs);
    expect(String(error)).toContain(path);
  });

  it('in the place of the file that names the lock’s holder is not followed', async () => {
    const path = join(folders.runtime, 'lock.pid');
    await mkdir(folders.runtime, { recursive: true });
    await replaced(path);
    expect(await store.lock(async () => 'worked')).toBe('worked');
  });

  it('in the place of a temporary file is not followed', async () => {
    const path = `${statePath()}.${process.pid}.tmp`;
    await put(path);
    const error = await failure(store.write({ ...state, drained: true }));
    if (what === 'a folder') expect(String(error)).toContain(statePath());
    else expect(error).toBe('done');
    expect((await lstat(statePath())).isFile()).toBe(true);
  });

  it('in the place of the login is refused by its path', async () => {
    const folder = join(root, 'login');
    const login = { service: { url: 'https://cp.example.net', insecureHttp: false }, token: new Secret('cpu_canary') };
    await writeLogin(folder, login);
    const path = join(folder, 'login.json');
    await replaced(path);
    expect(String(await failure(readLogin(folder)))).toContain(path);
  });
});

describe('a file that others may read', () => {
  it('is closed by the next change of the host, with a warning', async () => {
    const paths = [store.configPath('cpn0'), `${statePath()}.previous`, statePath()];
    await store.write({ ...state, drained: true });
    for (const path of paths) await chmod(path, 0o644);
    expect(await store.read('cpn0')).not.toBeNull();
    expect(warnings).toEqual([]);
    await store.lock(async () => {});
    expect(await Promise.all(paths.map(modeOf))).toEqual(['600', '600', '600']);
    expect(warnings.map((each) => each.split(' (')[0])).toEqual(paths.map((path) => `others could read ${path}`));
    await store.lock(async () => {});
    expect(warnings).toHaveLength(3);
  });

  it('is closed without a change to another name of it', async () => {
    const other = join(root, 'other');
    await rm(statePath());
    await writeFile(other, formatState(state), { mode: 0o644 });
    await link(other, statePath());
    await store.lock(async () => {});
    expect([await modeOf(other), await modeOf(statePath())]).toEqual(['644', '600']);
  });

  it('is closed when it is a login', async () => {
    const folder = join(root, 'login');
    const service = { url: 'https://cp.example.net', insecureHttp: false };
    await writeLogin(folder, { service, token: new Secret('cpu_canary') });
    await chmod(join(folder, 'login.json'), 0o644);
    expect((await readLogin(folder, (trouble) => warnings.push(trouble)))?.token.reveal()).toBe('cpu_canary');
    expect(await modeOf(join(folder, 'login.json'))).toBe('600');
    expect(warnings.join()).toContain(`others could read ${join(folder, 'login.json')} (mode 0644)`);
  });
});

describe('a state that others may write', () => {
  it.each([0o666, 0o620])('with mode %o is refused until a person has seen it', async (mode) => {
    await chmod(statePath(), mode);
    const refused = store.lock(() => store.read('cpn0'));
    await expect(refused).rejects.toThrow(UnreadableFile);
    await expect(refused).rejects.toThrow(`${statePath()} can be written by others (mode 0${mode.toString(8)})`);
    await chmod(statePath(), 0o600);
    expect(await store.read('cpn0')).not.toBeNull();
  });
});

describe('a folder that others may write in', () => {
  it.each(['state', 'runtime'] as const)('is closed to them when it is that of the %s', async (which) => {
    await mkdir(folders[which], { recursive: true });
    await chmod(folders[which], 0o777);
    await store.lock(() => store.write(state));
    expect(await modeOf(folders[which])).toBe('755');
    expect(warnings).toEqual([`others could write in ${folders[which]} (mode 0777); cpn has closed it`]);
  });

  it('keeps its mode when it has the sticky bit: there no other user can remove our files', async () => {
    await chmod(folders.state, 0o1777);
    await store.lock(() => store.write(state));
    expect([await modeOf(folders.state), warnings]).toEqual(['1777', []]);
  });

  it('keeps its mode when it is that of the wg-quick files, with a warning', async () => {
    await chmod(folders.config, 0o777);
    await store.writeConfig('cpn0', 'new');
    expect(await modeOf(folders.config)).toBe('777');
    expect(warnings.join()).toContain(`type: chmod go-w ${folders.config}`);
  });
});

/** Only root can give a file away. */
describe.runIf(process.geteuid?.() === 0)('what belongs to another user', () => {
  it('is refused when it is a state', async () => {
    await chown(statePath(), 4242, 4242);
    await expect(store.read('cpn0')).rejects.toThrow(`${statePath()} belongs to user 4242`);
  });

  it.each(['config', 'state', 'runtime'] as const)('is refused when it is the folder of the %s', async (which) => {
    await mkdir(folders[which], { recursive: true });
    await chown(folders[which], 4242, 4242);
    const refused = store.prepare();
    await expect(refused).rejects.toThrow(NotOurs);
    await expect(refused).rejects.toThrow(`the folder of user 4242 "${folders[which]}"`);
  });

  it('is refused when it is a link to a folder of ours', async () => {
    const elsewhere = join(root, 'elsewhere');
    await mkdir(elsewhere, { mode: 0o700 });
    await rm(folders.runtime, { recursive: true, force: true });
    await symlink(elsewhere, folders.runtime);
    expect(await store.lock(async () => 'worked')).toBe('worked');
    await symlink(elsewhere, folders.runtime).catch(() => {});
    spawnSync('chown', ['-h', '4242:4242', folders.runtime]);
    await expect(store.lock(async () => 'worked')).rejects.toThrow(NotOurs);
    expect((await stat(elsewhere)).uid).toBe(0);
  });
});
