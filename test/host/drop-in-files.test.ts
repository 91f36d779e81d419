import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { CommandFailed } from '../../src/core/errors/index.ts';
import { type Reloader, removeDropIns, writeDropIns } from '../../src/host/drop-in-files.ts';

const mark = '# cpn cpn0 (written by cpn; edits are lost)\n';
const text = `${mark}server=/corp.example/192.168.50.53\n`;

let folder: string;
let path: string;
/** What the program does, and the file that it then finds. */
let seen: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-drop-in-'));
  path = join(folder, 'cpn-cpn0.conf');
  seen = [];
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
});

function reloader(fails: 'check' | 'reload' | null = null): Reloader {
  const note = (what: 'check' | 'reload' | 'restore') => async () => {
    const found = await readFile(path, 'utf8').catch(() => 'none');
    seen.push(`${what} ${found.startsWith(text) ? 'new' : found.replace(mark, '')}`);
    if (what === fails) throw new CommandFailed(what, 1, 'no');
  };
  return { check: note('check'), reload: note('reload'), restore: note('restore') };
}

describe('a file for a resolver', () => {
  it('is checked, written and read, for all to read, and removed', async () => {
    await writeDropIns({ [path]: text }, reloader());
    expect(await readFile(path, 'utf8')).toBe(text);
    expect((await stat(path)).mode & 0o777).toBe(0o644);
    await removeDropIns({ [path]: null }, reloader());
    expect(seen).toEqual(['check none', 'reload new', 'reload none']);
    expect(await readdir(folder)).toEqual([]);
  });

  it('differs from the planned one until the program has read it', async () => {
    const interrupted: Reloader = { ...reloader(), reload: () => new Promise(() => {}) };
    void writeDropIns({ [path]: text }, interrupted);
    await expect.poll(() => readFile(path, 'utf8').catch(() => '')).toBe(`${text}# not read yet\n`);
  });

  it('is as before if the check or the program fails', async () => {
    await expect(writeDropIns({ [path]: text }, reloader('check'))).rejects.toThrow(CommandFailed);
    expect(await readdir(folder)).toEqual([]);
    await writeFile(path, `${mark}former`);
    const other = join(folder, 'other');
    await expect(writeDropIns({ [path]: text, [other]: text }, reloader('reload'))).rejects.toThrow(CommandFailed);
    expect(await readFile(path, 'utf8')).toBe(`${mark}former`);
    expect(await readdir(folder)).toEqual(['cpn-cpn0.conf']);
    expect(seen.slice(-2)).toEqual(['reload new', 'restore former']);
  });

  it('is not written over, nor removed, if it is of another program', async () => {
    await writeFile(path, 'server=192.0.2.1\n');
    await expect(writeDropIns({ [path]: text }, reloader())).rejects.toThrow('is not a file of cpn');
    await expect(removeDropIns({ [path]: null }, reloader())).rejects.toThrow('is not a file of cpn');
    await rm(path);
    await writeFile(join(folder, 'target'), text);
    await symlink(join(folder, 'target'), path);
    await expect(writeDropIns({ [path]: text }, reloader())).rejects.toThrow('is not a file of cpn');
    expect(seen).toEqual([]);
  });

  it('is removed although the program fails', async () => {
    await writeFile(path, text);
    await removeDropIns({ [path]: null }, reloader('reload'));
    expect(await readdir(folder)).toEqual([]);
  });
});
