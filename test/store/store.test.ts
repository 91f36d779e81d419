import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../src/core/crypto/secret.ts';
import { DiskFailed, UnreadableFile } from '../../src/core/errors/index.ts';
import { fileStore } from '../../src/store/file-store.ts';
import { noNotes } from '../../src/store/notes.ts';
import type { State } from '../../src/store/state/state.ts';
import { formatState, parseState } from '../../src/store/state/state-file.ts';
import type { Folders, HostStore } from '../../src/store/store.ts';
import { keyPair, network, peer, prefix } from '../core/samples.ts';
import { state } from './samples.ts';

let root: string;
let folders: Folders;
let store: HostStore;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'cpn-store-'));
  folders = { config: join(root, 'etc/wireguard'), state: join(root, 'state'), runtime: join(root, 'run') };
  store = fileStore(folders);
});

afterEach(() => rm(root, { recursive: true }));

describe('what a killed writer left', () => {
  it('is removed under the next lock, and nothing else is', async () => {
    await store.write(state);
    await store.writeConfig('cpn0', 'text');
    const left = [join(folders.config, 'cpn0.conf.327.tmp'), join(folders.state, 'cpn0.json.previous.12.tmp')];
    const others = ['cpn0.conf.tmp', 'cpn0.conf.bak', 'cpn1.conf.327.tmp'].map((name) => join(folders.config, name));
    for (const path of [...left, ...others]) await writeFile(path, 'key');
    await store.lock(async () => {});
    expect(await readdir(folders.config)).toEqual(['cpn0.conf', 'cpn0.conf.bak', 'cpn0.conf.tmp', 'cpn1.conf.327.tmp']);
    expect(await readdir(folders.state)).toEqual(['cpn0.json']);
  });
});

describe('a state file', () => {
  it('reads as it was written, secrets included', async () => {
    await store.write(state);
    expect(formatState((await store.read('cpn0')) as State)).toBe(formatState(state));
    expect((await store.read('cpn0'))?.membership?.accessToken?.reveal()).toBe('cpp_canary');
  });

  it('keeps the settings of a ready wg-quick text, and a personal token', async () => {
    const { membership } = state;
    const given = {
      allowedIps: [prefix('10.77.0.2/32')],
      presharedKey: new Secret(keyPair(9).publicKey),
      keepalive: 25,
    };
    const peers = [
      peer(1, { unlisted: true }),
      peer(2, { given }),
      peer(3, { given: { ...given, presharedKey: null } }),
    ];
    const lent = { ...membership, accessToken: null, personalToken: new Secret('cpt_canary') };
    const plain = { ...state, membership: { ...lent, map: network(peers, { id: null }) } } as State;
    await store.write(plain);
    const read = await store.read('cpn0');
    expect(formatState(read as State)).toBe(formatState(plain));
    expect(read?.membership?.personalToken?.reveal()).toBe('cpt_canary');
    expect(read?.membership?.map.peers[1]?.given?.presharedKey?.reveal()).toBe(keyPair(9).publicKey);
    expect(JSON.stringify(read)).not.toContain(keyPair(9).publicKey);
  });

  it('of a cpn without personal tokens has none', () => {
    const { personalToken: _, ...membership } = JSON.parse(formatState(state)).membership;
    const old = JSON.stringify({ ...JSON.parse(formatState(state)), membership });
    expect(parseState(old).membership?.personalToken).toBeNull();
  });

  it('of a cpn that measured no paths has no path MTU', () => {
    const { pathMtu: _, ...old } = JSON.parse(formatState(state));
    expect(parseState(JSON.stringify(old)).pathMtu).toBeNull();
  });

  it('keeps an unfinished join', () => {
    const begun = { ...state, membership: null };
    expect(parseState(formatState(begun))).toEqual(begun);
  });

  it('of a cpn without a daemon is read: a name had one address then, and nothing was refused', () => {
    const { refused: _, resolved, ...rest } = JSON.parse(formatState(state));
    expect(resolved).toEqual({ 'cp.example.net': ['2001:db8::1'] });
    const old = JSON.stringify({ ...rest, resolved: { 'cp.example.net': '2001:db8::1' } });
    expect(parseState(old)).toEqual(state);
  });

  it('is readable only for its owner, as its folder is', async () => {
    await store.write(state);
    expect((await stat(join(folders.state, 'cpn0.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(folders.state)).mode & 0o777).toBe(0o700);
  });

  it('that is damaged is left as it is, and reported', async () => {
    await store.write(state);
    const path = join(folders.state, 'cpn0.json');
    for (const text of ['', '{', 'null', '{"version":1}', formatState(state).replace('10.77.0.2', '10.77.0')]) {
      await writeFile(path, text);
      await expect(store.read('cpn0')).rejects.toThrow(UnreadableFile);
      expect(await readFile(path, 'utf8')).toBe(text);
    }
  });

  it('of a later version is refused, and kept', async () => {
    await store.write(state);
    const path = join(folders.state, 'cpn0.json');
    const later = formatState(state).replace('"version": 1', '"version": 2');
    expect(later).toContain('"version": 2');
    await writeFile(path, later);
    await expect(store.read('cpn0')).rejects.toThrow(/is of version 2; use the cpn that wrote it/);
    expect(await readFile(path, 'utf8')).toBe(later);
  });

  it('does not show its secrets in an error', async () => {
    await store.write(state);
    const path = join(folders.state, 'cpn0.json');
    await writeFile(path, formatState(state).replace('"enabled": true', '"enabled": 7'));
    const error = await store.read('cpn0').catch((failure: Error) => failure);
    expect(`${(error as Error).stack}${JSON.stringify(error)}${(error as Error).cause}`).not.toMatch(
      new RegExp(`cpp_canary|${state.keyPair.privateKey.reveal().slice(0, 20)}`),
    );
  });

  it('is listed by its interface, and other files are not', async () => {
    await store.write({ ...state, interface: 'cpn1' });
    await store.write(state);
    await writeFile(join(folders.state, 'notes.txt'), '');
    expect((await store.list()).states.map((each) => each.interface)).toEqual(['cpn0', 'cpn1']);
  });
});

describe('a file', () => {
  it('is replaced as a whole: a link in its place is not followed', async () => {
    await mkdir(folders.config, { recursive: true });
    const target = join(root, 'precious');
    await writeFile(target, 'precious');
    await symlink(target, store.configPath('cpn0'));
    await store.writeConfig('cpn0', 'new');
    expect(await readFile(target, 'utf8')).toBe('precious');
    expect(await store.readConfig('cpn0')).toBe('new');
  });

  it('keeps its old text when the new one cannot be written', async () => {
    await store.writeConfig('cpn0', 'old');
    const path = store.configPath('cpn0');
    await rm(path);
    await mkdir(path);
    await writeFile(join(path, 'inside'), '');
    await expect(store.writeConfig('cpn0', 'new')).rejects.toThrow();
    expect(await readdir(folders.config)).toEqual(['cpn0.conf']);
  });

  it('gets strict permissions when it is replaced', async () => {
    await store.writeConfig('cpn0', 'old');
    await chmod(store.configPath('cpn0'), 0o644);
    await store.writeConfig('cpn0', 'new');
    expect((await stat(store.configPath('cpn0'))).mode & 0o777).toBe(0o600);
  });
});

describe('a network that is removed', () => {
  const notesPath = () => join(folders.runtime, 'cpn0.notes.json');

  it('leaves no file: neither one that was set aside, nor notes on disk or in memory', async () => {
    await store.write(state);
    await store.writeConfig('cpn0', 'text');
    await store.setConfigAside('cpn0');
    await store.amendNotes('cpn0', { troubles: ['written'] });
    const obstacle = `${notesPath()}.${process.pid}.tmp`;
    await mkdir(join(obstacle, 'inside'), { recursive: true });
    await store.amendNotes('cpn0', { troubles: ['in memory'] });
    expect((await store.readNotes('cpn0')).troubles).toEqual(['in memory']);
    await rm(obstacle, { recursive: true });
    await store.forget('cpn0', []);
    expect(await store.readNotes('cpn0')).toEqual(noNotes);
    for (const folder of [folders.config, folders.state, folders.runtime]) expect(await readdir(folder)).toEqual([]);
  });

  it('keeps its state until all else is removed, so that the removal can be repeated', async () => {
    await store.write(state);
    await mkdir(join(notesPath(), 'inside'), { recursive: true });
    await expect(store.forget('cpn0', [])).rejects.toBeInstanceOf(DiskFailed);
    expect(await store.read('cpn0')).toEqual(state);
    await rm(notesPath(), { recursive: true });
    await store.forget('cpn0', []);
    expect(await store.read('cpn0')).toBeNull();
  });

  it('is no longer damaged', async () => {
    await store.write({ ...state, enabled: false });
    await store.write(state);
    await writeFile(join(folders.state, 'cpn0.json'), '{', { mode: 0o600 });
    await store.read('cpn0');
    expect([...store.damaged]).toEqual(['cpn0']);
    await store.forget('cpn0', []);
    expect([...store.damaged]).toEqual([]);
  });
});

it('a change ends without a wait for the lock of passes, which then removes the folders', async () => {
  expect(await store.lock(() => store.change(async () => 'done'))).toBe('done');
  expect(await readdir(root)).toEqual([]);
});

describe('the folders', () => {
  it('that cpn made are removed with the last network, and others stay', async () => {
    await mkdir(folders.config, { recursive: true });
    expect(await store.prepare()).toEqual([folders.state, folders.runtime]);
    await store.lock(() => store.write(state));
    expect(await readdir(root)).toEqual(['etc', 'run', 'state']);
    const later = fileStore(folders);
    await later.lock(() => later.forget('cpn0', [folders.state, folders.runtime]));
    expect(await readdir(root)).toEqual(['etc']);
  });

  it('within each other are removed innermost first, with the locks of killed processes', async () => {
    await store.prepare();
    for (const name of ['daemon', 'change']) await writeFile(join(folders.runtime, name), '');
    await store.lock(async () => {});
    expect(await readdir(root)).toEqual([]);
  });

  it('in the receipt of a network are removed with it, by any process', async () => {
    const made = await store.prepare();
    await store.lock(() => store.write({ ...state, receipt: made.map((path) => ({ made: 'folder', path })) }));
    const later = fileStore(folders);
    await later.lock(() => later.forget('cpn0', []));
    expect(await readdir(root)).toEqual([]);
  });

  it('that were there before stay, without the lock', async () => {
    await mkdir(folders.runtime);
    await store.lock(async () => {});
    expect(await readdir(folders.runtime)).toEqual([]);
  });

  it('that hold files of other programs stay', async () => {
    await store.prepare();
    await writeFile(join(folders.config, 'wg0.conf'), '');
    await store.lock(async () => {});
    expect(await readdir(folders.config)).toEqual(['wg0.conf']);
    expect(await readdir(root)).toEqual(['etc']);
  });
});
