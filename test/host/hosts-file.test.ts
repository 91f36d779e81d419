import {
  chmod,
  chown,
  type FileHandle,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readHosts, writeHosts } from '../../src/host/hosts-file.ts';
import { holdCall, replaceCall } from '../lab/hold-call.ts';

const block = '# BEGIN cpn cpn0 (written by cpn; edits are lost)\n10.77.0.2 edge.office.cpn.internal\n# END cpn cpn0\n';
/** With bytes that are no UTF-8. */
const machine = Buffer.from('127.0.0.1 localhost # caf\u{e9} \u{ff}\u{fe}\n', 'latin1');

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-hosts-'));
  path = join(folder, 'hosts');
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(path, machine);
});

describe('a hosts file', () => {
  it('gets a block and loses it, and then has its former bytes, mode and owner', async () => {
    await chmod(path, 0o664);
    if (process.getuid?.() === 0) await chown(path, 12, 34);
    const { mode, uid, gid } = await stat(path);
    expect(await readHosts('cpn0', path)).toEqual({ block: null, trouble: null });
    await writeHosts('cpn0', block, path);
    expect(await readHosts('cpn0', path)).toEqual({ block, trouble: null });
    expect(await readFile(path)).toEqual(Buffer.concat([machine, Buffer.from(block)]));
    expect(await stat(path)).toMatchObject({ mode, uid, gid });
    await writeHosts('cpn0', null, path);
    expect(await readFile(path)).toEqual(machine);
    expect(await readdir(folder)).toEqual(['hosts']);
  });

  it('is replaced atomically, and not written without a change', async () => {
    const { ino } = await stat(path);
    await writeHosts('cpn0', block, path);
    const replaced = await stat(path);
    expect(replaced.ino).not.toBe(ino);
    await writeHosts('cpn0', block, path);
    expect(await stat(path)).toMatchObject({ ino: replaced.ino, mtimeMs: replaced.mtimeMs, ctimeMs: replaced.ctimeMs });
  });

  it('the temporary file of an interrupted write is removed', async () => {
    await writeFile(`${path}.cpn.tmp`, 'half');
    await writeHosts('cpn0', null, path);
    expect(await readdir(folder)).toEqual(['hosts']);
  });

  it('that is a symbolic link is written at its target', async () => {
    const link = join(folder, 'link');
    await symlink(path, link);
    await writeHosts('cpn0', block, link);
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
    expect(await readFile(path, 'latin1')).toContain(block);
  });

  it('without write permission is not changed, and the reason is reported', async () => {
    const link = join(folder, 'link');
    await symlink(path, link);
    await chmod(path, 0o444);
    expect((await readHosts('cpn0', path)).trouble).toBe(`${path} has no write permission (mode 444)`);
    expect((await readHosts('cpn0', link)).trouble).toBe(
      `${link}, which is ${path}, has no write permission (mode 444)`,
    );
  });

  it.each([
    ['does not exist', 'nowhere', /nowhere does not exist; create it, even if empty/],
    ['is a folder', '.', /is not a file/],
  ])('that %s is reported', async (_what, name, trouble) => {
    const at = join(folder, name);
    expect(await readHosts('cpn0', at)).toEqual({ block: null, trouble: expect.stringMatching(trouble) });
    await expect(writeHosts('cpn0', block, at)).rejects.toMatchObject({
      name: expect.stringMatching(/^(DiskFailed|CommandFailed)$/),
    });
  });

  /** Refuses `rename`, or the open of the new file, as the kernel does. */
  function refuse(call: 'rename' | 'open', code: string): void {
    const refusal = Object.assign(new Error(code), { code, errno: -1 });
    replaceCall(call, (original) => async (...given) => {
      if (call === 'rename' || String(given[0]).endsWith('.tmp')) throw refusal;
      return original(...given);
    });
  }

  it.each(['rename', 'open'] as const)(
    'is written in place only where its %s fails as that of a mount does',
    async (call) => {
      for (const code of ['EBUSY', 'EXDEV', 'EROFS', 'EACCES', 'EPERM']) {
        await writeFile(path, machine);
        refuse(call, code);
        await writeHosts('cpn0', block, path);
        expect([code, await readFile(path)]).toEqual([code, Buffer.concat([machine, Buffer.from(block)])]);
      }
      // A write in place could end in the middle.
      for (const code of ['ENOSPC', 'EDQUOT', 'EIO', 'ENOMEM', 'EMFILE', 'ENFILE']) {
        await writeFile(path, machine);
        refuse(call, code);
        await expect(writeHosts('cpn0', block, path), code).rejects.toMatchObject({ name: 'DiskFailed' });
        expect([code, await readFile(path)]).toEqual([code, machine]);
      }
    },
  );

  it('with a damaged block is not changed, and the reason is reported', async () => {
    const damaged = `# BEGIN cpn cpn0\n10.77.0.2 edge\n${machine.toString('latin1')}`;
    await writeFile(path, damaged, 'latin1');
    const { block: found, trouble } = await readHosts('cpn0', path);
    expect(found).toBe(damaged);
    expect(trouble).toBe(
      `one of the lines "# BEGIN cpn cpn0" and "# END cpn cpn0" is missing in ${path}; remove the rest of that block`,
    );
    for (const wanted of [block, null]) {
      await expect(writeHosts('cpn0', wanted, path)).rejects.toThrow('is missing in');
    }
    expect(await readFile(path, 'latin1')).toBe(damaged);
    expect(await readHosts('cpn1', path)).toEqual({ block: null, trouble: null });
  });
});

describe('a hosts file that another program changes', () => {
  const others = '192.0.2.7 printer\n';

  const append = () => writeFile(path, others, { flag: 'a' });
  const replace = async () => {
    await writeFile(`${path}.new`, Buffer.from(machine).fill('#', 0, 1));
    await rename(`${path}.new`, path);
  };

  it.each([
    ['in place, before the first look at it', 'stat', 1, append],
    ['in place, while the new file is written', 'open', 1, append],
    ['in place, before the second look at it', 'stat', 2, append],
    ['by a new file of the same size', 'stat', 2, replace],
  ] as const)('%s keeps that change, and gets the block', async (_, call, nth, change) => {
    const held = holdCall(call, nth);
    const writing = writeHosts('cpn0', block, path);
    await Promise.race([held.reached, writing]);
    await change();
    const changed = await readFile(path);
    held.release();
    await writing;
    expect(await readFile(path)).toEqual(Buffer.concat([changed, Buffer.from(block)]));
    expect(await readdir(folder)).toEqual(['hosts']);
  });

  it('each time that it was read is left to that program', async () => {
    let looks = 0;
    replaceCall('stat', (original) => async (...given) => {
      looks += 1;
      if (looks % 2 === 0) await append();
      return original(...given);
    });
    await expect(writeHosts('cpn0', block, path)).rejects.toThrow('another program keeps changing it');
    expect(await readFile(path, 'latin1')).toBe(machine.toString('latin1') + others.repeat(looks / 2));
    expect(await readdir(folder)).toEqual(['hosts']);
  });

  it('is whole for a reader until it is replaced', async () => {
    const replacing = holdCall('rename');
    const writing = writeHosts('cpn0', block, path);
    await replacing.reached;
    expect(await readFile(path)).toEqual(machine);
    replacing.release();
    await writing;
  });

  it('where it is a mount, has every line of the machine at every step of its change', async () => {
    await writeHosts('cpn0', block, path);
    const seen: string[] = [];
    const isMount = Object.assign(new Error('EBUSY'), { code: 'EBUSY', errno: -16 });
    replaceCall('rename', () => async () => Promise.reject(isMount));
    replaceCall('open', (original) => async (...given) => {
      const file = (await original(...given)) as FileHandle;
      seen.push(await readFile(path, 'latin1'));
      for (const name of ['writeFile', 'truncate', 'sync'] as const) {
        const work = file[name].bind(file) as (...given: unknown[]) => Promise<void>;
        Object.assign(file, {
          [name]: async (...data: unknown[]) => {
            await work(...data);
            seen.push(await readFile(path, 'latin1'));
          },
        });
      }
      return file;
    });
    await writeHosts('cpn0', null, path);
    expect(seen.length).toBeGreaterThan(3);
    for (const text of seen) expect(text).toContain(machine.toString('latin1'));
    expect(await readFile(path)).toEqual(machine);
  });
});
