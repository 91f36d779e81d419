import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { exportTunnel } from '../../../src/cli/commands/export.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { makeSecretFile } from '../../../src/cli/input/secret-file.ts';
import { findRecipient } from '../../../src/cli/output/hand-over.ts';
import type { ExportedFiles, Format } from '../../../src/core/export/format.ts';
import { replaceCall } from '../../lab/hold-call.ts';

let folder: string;
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-export-'));
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Lets the sync of the `nth` file that is opened for writing fail, as that of a full disk does. */
function failSync(nth: number): void {
  let opened = 0;
  replaceCall('open', (original) => async (...given) => {
    const file = (await original(...given)) as FileHandle;
    if (given[1] !== 'wx') return file;
    opened += 1;
    if (opened === nth) {
      const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', errno: -28 });
      Object.assign(file, { sync: async () => Promise.reject(full) });
    }
    return file;
  });
}

describe('a file for a secret', () => {
  it('is for its owner alone, whatever the mask of the process is', async () => {
    const before = process.umask(0);
    try {
      await (await makeSecretFile(at('key'), '--output')).write('secret');
    } finally {
      process.umask(before);
    }
    expect([statSync(at('key')).mode & 0o777, readFileSync(at('key'), 'utf8')]).toEqual([0o600, 'secret']);
  });

  it('is never one that is there, which may hold the only copy of a key', async () => {
    writeFileSync(at('key'), 'older');
    await expect(makeSecretFile(at('key'), '--output')).rejects.toThrow('already exists; name another file');
    expect(readFileSync(at('key'), 'utf8')).toBe('older');
    await expect(makeSecretFile(at('none/key'), '--output')).rejects.toThrow('cannot be created (ENOENT)');
  });

  it('is gone after a failed write, and after it was not needed', async () => {
    failSync(1);
    const file = await makeSecretFile(at('key'), '--output');
    await expect(file.write('secret')).rejects.toMatchObject({ name: 'DiskFailed' });
    expect(readdirSync(folder)).toEqual([]);
    await (await makeSecretFile(at('key'), '--output')).discard();
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('an export to files', () => {
  const files = [
    { suffix: '.netdev', text: 'one' },
    { suffix: '.network', text: 'two' },
  ] as unknown as ExportedFiles;
  const find = (given: object, format: Format = 'networkd') =>
    findRecipient(new Input({ ...given }, exportTunnel.flags, {}), format);

  it('of systemd-networkd is two, side by side', async () => {
    await (await find({ output: at('70-wg0.netdev') })).handOver(files);
    expect(readdirSync(folder)).toEqual(['70-wg0.netdev', '70-wg0.network']);
    expect([readFileSync(at('70-wg0.netdev'), 'utf8'), readFileSync(at('70-wg0.network'), 'utf8')]).toEqual([
      'one',
      'two',
    ]);
  });

  it('leaves neither where the second is there already', async () => {
    writeFileSync(at('wg0.network'), 'older');
    await expect(find({ output: at('wg0.netdev') })).rejects.toThrow('wg0.network, which already exists');
    expect(readdirSync(folder)).toEqual(['wg0.network']);
  });

  it.each([1, 2])('leaves neither where the write of file %i fails', async (nth) => {
    failSync(nth);
    const recipient = await find({ output: at('wg0.netdev') });
    await expect(recipient.handOver(files)).rejects.toMatchObject({ name: 'DiskFailed' });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('leaves neither where there is nothing to write', async () => {
    await (await find({ output: at('wg0.netdev') })).cancel();
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    [{ qr: true, output: 'x' }, 'wg-quick', 'give one of them'],
    [{ qr: true }, 'networkd', '--qr is for --format wg-quick only'],
    [{ qr: true }, 'networkmanager', '--qr is for --format wg-quick only'],
    [{ qr: true }, 'openwrt', '--qr is for --format wg-quick only'],
    [{}, 'networkd', 'systemd-networkd needs two files'],
    [{ output: 'wg0.conf' }, 'networkd', 'does not end in .netdev'],
  ] as const)('with %j as %s is refused first', async (given, format, problem) => {
    await expect(find(given, format)).rejects.toThrow(problem);
  });

  it.each(['wg-quick', 'networkmanager', 'openwrt'] as const)(
    'does not show a key on a terminal as %s',
    async (format) => {
      const isTerminal = process.stdout.isTTY;
      try {
        process.stdout.isTTY = true;
        await expect(find({}, format)).rejects.toThrow('would stay on the terminal');
      } finally {
        process.stdout.isTTY = isTerminal;
      }
    },
  );
});
