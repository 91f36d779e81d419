import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskFailed, UnreadableFile } from '../../../src/core/errors/index.ts';
import { fileStore } from '../../../src/store/file-store.ts';
import { formatState } from '../../../src/store/state/state-file.ts';
import type { Folders, HostStore } from '../../../src/store/store.ts';
import { state } from '../samples.ts';

let root: string;
let folders: Folders;
let store: HostStore;
let damages: string[];

const older = { ...state, enabled: false };
const nulls = '\0'.repeat(formatState(state).length);
const cutShort = formatState(state).slice(0, 700);
const later = formatState(state).replace('"version": 1', '"version": 2');

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'cpn-copies-'));
  folders = { config: join(root, 'etc'), state: join(root, 'state'), runtime: join(root, 'run') };
  damages = [];
  store = fileStore(folders, (path, cause) => damages.push(`${path}: ${(cause.cause as Error).message}`));
});

afterEach(() => rm(root, { recursive: true }));

const pathOf = (suffix: string, name = 'cpn0') => join(folders.state, `${name}.json${suffix}`);
const textOf = (suffix: string) => readFile(pathOf(suffix), 'utf8');
const spoil = (text: string) => writeFile(pathOf(''), text);

async function writeTwice(): Promise<void> {
  await store.write(older);
  await store.write(state);
}

describe('a damaged file', () => {
  it('is reported once, and again after it was good', async () => {
    await writeTwice();
    await spoil(cutShort);
    for (let reads = 0; reads < 3; reads += 1) await store.read('cpn0');
    expect([damages.length, [...store.damaged]]).toEqual([1, ['cpn0']]);
    // Another process repairs it.
    await spoil(formatState(state));
    await store.read('cpn0');
    expect([...store.damaged]).toEqual([]);
    await spoil(nulls);
    await store.read('cpn0');
    expect([damages.length, [...store.damaged]]).toEqual([2, ['cpn0']]);
  });

  it('stays damaged where it cannot be repaired, and is repaired by the next lock', async () => {
    await writeTwice();
    await spoil(cutShort);
    const obstacle = pathOf(`.damaged.${process.pid}.tmp`);
    await mkdir(join(obstacle, 'inside'), { recursive: true });
    await store.lock(async () => {});
    expect([[...store.damaged], await textOf('')]).toEqual([['cpn0'], cutShort]);
    await rm(obstacle, { recursive: true });
    await store.lock(async () => {});
    expect([[...store.damaged], await textOf('')]).toEqual([[], formatState(older)]);
  });
});

describe('the previous copy', () => {
  it('is what was there before a write, readable only for the owner, and a file of its own', async () => {
    await writeTwice();
    expect(await textOf('.previous')).toBe(formatState(older));
    expect((await stat(pathOf('.previous'))).mode & 0o777).toBe(0o600);
    expect((await stat(pathOf(''))).nlink).toBe(1);
    expect(await readdir(folders.state)).toEqual(['cpn0.json', 'cpn0.json.previous']);
  });

  it('stays when the same state is written again: nothing is written then', async () => {
    await writeTwice();
    const { ino } = await stat(pathOf(''));
    await store.write({ ...state });
    expect([(await stat(pathOf(''))).ino, await textOf('.previous')]).toEqual([ino, formatState(older)]);
  });

  it('stays when a state is written that another process wrote already: that file is synced', async () => {
    await writeTwice();
    await store.write(older);
    await spoil(formatState(state));
    expect(await store.read('cpn0')).toEqual(state);
    const { ino } = await stat(pathOf(''));
    const done: unknown[] = [];
    const note = (message: unknown) => void done.push(message);
    subscribe('cpn:checkpoint', note);
    await store.write(state);
    unsubscribe('cpn:checkpoint', note);
    expect([(await stat(pathOf(''))).ino, await textOf('.previous')]).toEqual([ino, formatState(state)]);
    expect(JSON.stringify(done)).toContain(pathOf(''));
    expect(JSON.stringify(done)).toContain('fsync');
  });

  it('is made by a write after an interrupted one', async () => {
    await writeTwice();
    // So a writer leaves it that is killed between the two renames.
    await rm(pathOf('.previous'));
    await link(pathOf(''), pathOf('.previous'));
    await store.write(older);
    expect([await textOf(''), await textOf('.previous')]).toEqual([formatState(older), formatState(state)]);
    expect(await readdir(folders.state)).toEqual(['cpn0.json', 'cpn0.json.previous']);
  });

  it.each([
    ['empty', ''],
    ['all NUL bytes', nulls],
    ['cut short', cutShort],
    ['against the schema', '{"version":1}'],
    ['that of another interface', formatState({ ...state, interface: 'cpn9' })],
  ])('replaces a file that is %s', async (_, text) => {
    await writeTwice();
    await spoil(text);
    expect(await store.read('cpn0')).toEqual(older);
    expect((await store.list()).states).toEqual([older]);
    expect([...store.damaged]).toEqual(['cpn0']);
    expect(damages).toHaveLength(1);
    expect(damages[0]).toContain(pathOf(''));
    expect(await textOf('')).toBe(text);
  });

  it('replaces a damaged file under the lock, before the work, and that one is set aside', async () => {
    await writeTwice();
    await spoil(nulls);
    const seen = await store.lock(async () => [await textOf(''), await textOf('.damaged'), await textOf('.previous')]);
    expect(seen).toEqual([formatState(older), nulls, formatState(older)]);
    expect((await stat(pathOf(''))).nlink).toBe(1);
    expect([...store.damaged]).toEqual([]);
  });

  it('is not replaced by damaged content, which is kept too', async () => {
    await writeTwice();
    await spoil(cutShort);
    await store.write(state);
    expect(await textOf('')).toBe(formatState(state));
    expect(await textOf('.previous')).toBe(formatState(older));
    expect(await textOf('.damaged')).toBe(cutShort);
  });

  it('of a state that was removed by hand is not used for the next network', async () => {
    await writeTwice();
    await rm(pathOf(''));
    expect(await store.read('cpn0')).toBeNull();
    await store.write({ ...state, createdAt: '2027-01-01T00:00:00.000Z' });
    await spoil('');
    await expect(store.read('cpn0')).rejects.toThrow(UnreadableFile);
    expect(await textOf('.damaged')).toBe(formatState(older));
  });

  it('that is damaged too stays, as the file does', async () => {
    await writeTwice();
    await spoil('');
    await writeFile(pathOf('.previous'), cutShort);
    await store.lock(async () => {
      await expect(store.read('cpn0')).rejects.toThrow(/holds the private key/);
    });
    expect([await textOf(''), await textOf('.previous')]).toEqual(['', cutShort]);
  });

  it('is reported where a write finds it, after a read that did not', async () => {
    await writeTwice();
    await store.read('cpn0');
    await spoil(nulls);
    await store.write(older);
    expect(damages).toEqual([expect.stringContaining(pathOf(''))]);
    expect([await textOf(''), await textOf('.damaged')]).toEqual([formatState(older), nulls]);
  });

  it('is removed when the network is left', async () => {
    await writeTwice();
    await spoil('');
    await store.lock(async () => {});
    await writeFile(`${pathOf('')}.12345.tmp`, 'of a writer that was killed');
    await store.forget('cpn0', []);
    expect(await readdir(folders.state)).toEqual([]);
  });

  it('without its file still counts as a state', async () => {
    await store.prepare();
    await writeTwice();
    await rm(pathOf(''));
    await store.lock(async () => {});
    expect(await readdir(folders.runtime)).toContain('lock');
  });
});

describe('a file of a later version', () => {
  beforeEach(async () => {
    await writeTwice();
    await spoil(later);
  });

  it('is refused even with a previous copy, and stays', async () => {
    await store.lock(async () => {
      await expect(store.read('cpn0')).rejects.toThrow(/is of version 2; use the cpn that wrote it/);
    });
    expect(await textOf('')).toBe(later);
    expect([...store.damaged]).toEqual([]);
  });

  it('is not overwritten', async () => {
    await expect(store.write(state)).rejects.toThrow(/is of version 2/);
    expect([await textOf(''), await textOf('.previous')]).toEqual([later, formatState(older)]);
  });
});

describe('a list', () => {
  it('has the other networks when one cannot be read', async () => {
    await store.write(state);
    await store.write({ ...state, interface: 'cpn1' });
    await store.write({ ...state, interface: 'cpn2' });
    await writeFile(pathOf('', 'cpn1'), 'not JSON');
    const { states, unreadable } = await store.list();
    expect(states.map((each) => each.interface)).toEqual(['cpn0', 'cpn2']);
    expect(unreadable).toEqual([{ interface: 'cpn1', error: expect.any(UnreadableFile) }]);
  });

  it('names a network whose file the disk fails to read', async () => {
    await store.write(state);
    await rm(pathOf(''));
    await mkdir(pathOf(''));
    const { unreadable } = await store.list();
    expect(unreadable).toEqual([{ interface: 'cpn0', error: expect.any(DiskFailed) }]);
    expect(unreadable[0]?.error.message).toMatch(
      /^cannot read .*cpn0\.json: illegal operation on a directory \(EISDIR\)/,
    );
  });

  it('does not show the content of a damaged file', async () => {
    await store.write(state);
    const key = state.keyPair.privateKey.reveal();
    await spoil(`{"privateKey": ${key}`);
    const [unreadable] = (await store.list()).unreadable;
    const shown = `${unreadable?.error.stack}${JSON.stringify(unreadable?.error)}${unreadable?.error.cause}`;
    expect(shown).not.toContain(key.slice(0, 6));
  });

  it('names a field that does not fit, without its value', async () => {
    await store.write(state);
    const key = state.keyPair.privateKey.reveal();
    const text = (await readFile(pathOf(''), 'utf8')).replace(/"membership": \{/, `"membership": "${key}", "was": {`);
    await spoil(text);
    const [unreadable] = (await store.list()).unreadable;
    expect(unreadable?.error.cause).toMatchObject({ message: 'membership has an unexpected form' });
    expect(`${unreadable?.error.stack}${JSON.stringify(unreadable?.error)}`).not.toContain(key.slice(0, 6));
  });

  it.each([
    ['an address', /"cidr": "[^"]*"/, '"cidr": "KEY"', 'a field is not an address range'],
    ['the URL of the service', /"url": "[^"]*"/, '"url": "KEY"', 'service has an unexpected form'],
  ])('does so for %s too', async (_, field, spoiled, message) => {
    await store.write(state);
    const key = state.keyPair.privateKey.reveal();
    await spoil((await readFile(pathOf(''), 'utf8')).replace(field, spoiled.replace('KEY', key)));
    const [unreadable] = (await store.list()).unreadable;
    expect(unreadable?.error.cause).toMatchObject({ message });
    expect(inspect(unreadable?.error, { depth: 9 })).not.toContain(key.slice(0, 6));
  });
});
