import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { CommandFailed, ResolverNotRestarted } from '../../src/core/errors/index.ts';
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

interface Program {
  readonly fails?: 'check' | 'reload';
  /** Fails only with this text. */
  readonly withFile?: string;
  readonly mayUseFormer?: boolean;
}

function reloader({ fails, withFile, mayUseFormer = true }: Program = {}): Reloader {
  const note = (what: 'check' | 'reload' | 'restore') => async () => {
    const found = await readFile(path, 'utf8').catch(() => 'none');
    const shown = found.startsWith(text) ? 'new' : found.replace(mark, '');
    seen.push(`${what} ${shown}`);
    if (what === fails && (withFile ?? shown) === shown) throw new CommandFailed(what, 1, 'no');
  };
  return {
    mayUseFormer: async () => mayUseFormer,
    ...{ check: note('check'), reload: note('reload'), restore: note('restore') },
  };
}

describe('a file for a resolver', () => {
  it('is checked, written and read, for all to read, and removed', async () => {
    await writeDropIns({ [path]: text }, reloader());
    expect(await readFile(path, 'utf8')).toBe(text);
    expect((await stat(path)).mode & 0o777).toBe(0o644);
    await removeDropIns({ texts: { [path]: null } }, reloader());
    expect(seen).toEqual(['check none', 'check new', 'reload new', 'check none', 'reload none']);
    expect(await readdir(folder)).toEqual([]);
  });

  it('differs from the planned one until the program has read it', async () => {
    const interrupted: Reloader = { ...reloader(), reload: () => new Promise(() => {}) };
    void writeDropIns({ [path]: text }, interrupted);
    await expect.poll(() => readFile(path, 'utf8').catch(() => '')).toBe(`${text}# not read yet\n`);
  });

  it('is not written to a program whose settings are broken, which is not touched', async () => {
    await expect(writeDropIns({ [path]: text }, reloader({ fails: 'check' }))).rejects.toThrow(CommandFailed);
    expect([await readdir(folder), seen]).toEqual([[], ['check none']]);
  });

  it('is taken back if it breaks the settings, without touching the program', async () => {
    const breaking = reloader({ fails: 'check', withFile: 'new' });
    await expect(writeDropIns({ [path]: text }, breaking)).rejects.toThrow(CommandFailed);
    expect([await readdir(folder), seen]).toEqual([[], ['check none', 'check new']]);
  });

  it('is as before if the program fails, which starts again', async () => {
    await writeFile(path, `${mark}former`);
    const texts = { [path]: text, [join(folder, 'other')]: text };
    await expect(writeDropIns(texts, reloader({ fails: 'reload' }))).rejects.toThrow(CommandFailed);
    expect(await readFile(path, 'utf8')).toBe(`${mark}former`);
    expect(await readdir(folder)).toEqual(['cpn-cpn0.conf']);
    expect(seen.slice(-2)).toEqual(['reload new', 'restore former']);
  });

  it('that breaks the program names both failures if it does not start again', async () => {
    const breaking = {
      ...reloader({ fails: 'reload' }),
      restore: () => Promise.reject(new CommandFailed('a', 1, 'b')),
    };
    await expect(writeDropIns({ [path]: text }, breaking)).rejects.toThrow(
      'reload exited with 1: no; then, with its former files: a exited with 1: b',
    );
    expect(await readdir(folder)).toEqual([]);
  });

  it('that cannot be taken back does not keep the program from its start', async () => {
    const texts = { [path]: text };
    const breaking = reloader({ fails: 'reload' });
    const reload = async () => {
      await rm(path);
      await mkdir(join(path, 'folder'), { recursive: true });
      await breaking.reload();
    };
    await expect(writeDropIns(texts, { ...breaking, reload })).rejects.toThrow(
      /reload exited.*; then, with its former/,
    );
    expect(seen.at(-1)).toBe('restore none');
  });

  it('is not written over, nor removed, if it is of another program', async () => {
    await writeFile(path, 'server=192.0.2.1\n');
    await expect(writeDropIns({ [path]: text }, reloader())).rejects.toThrow('is not a file of cpn');
    await expect(removeDropIns({ texts: { [path]: null } }, reloader())).rejects.toThrow('is not a file of cpn');
    await rm(path);
    await writeFile(join(folder, 'target'), text);
    await symlink(join(folder, 'target'), path);
    await expect(writeDropIns({ [path]: text }, reloader())).rejects.toThrow('is not a file of cpn');
    expect(seen).toEqual([]);
  });

  it.each(['check', 'reload'] as const)('is removed although the %s fails, which is an error', async (fails) => {
    await writeFile(path, text);
    await expect(removeDropIns({ texts: { [path]: null } }, reloader({ fails }))).rejects.toThrow(
      `${path} is removed, but in use until the program restarts: `,
    );
    expect(await readdir(folder)).toEqual([]);
    expect(seen).not.toContain('restore none');
  });

  it('is removed without a restart of a program that must not be restarted', async () => {
    await writeFile(path, text);
    const check = () => Promise.reject(new ResolverNotRestarted('dnsmasq', 'its settings changed'));
    await expect(removeDropIns({ texts: { [path]: null } }, { ...reloader(), check })).rejects.toThrow(
      `${path} is removed, but in use until the program restarts: its settings changed`,
    );
    expect([await readdir(folder), seen]).toEqual([[], []]);
  });

  it('is removed for a program that is stopped', async () => {
    await writeFile(path, text);
    await removeDropIns({ texts: { [path]: null } }, reloader({ fails: 'check', mayUseFormer: false }));
    expect([await readdir(folder), seen]).toEqual([[], []]);
  });
});
