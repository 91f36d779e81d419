import { closeSync, fchmodSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { printOnlyCopy } from '../../../src/cli/output/output.ts';
import { DiskFailed, Refused } from '../../../src/core/errors/index.ts';
import { memory } from '../../lab/memory.ts';

const said = { stdout: '', stderr: '' };
let lost: Error | null = null;
beforeEach(() => {
  Object.assign(said, { stdout: '', stderr: '' });
  lost = null;
  for (const name of ['stdout', 'stderr'] as const) {
    vi.spyOn(process[name], 'write').mockImplementation(((text: unknown, done?: (error?: Error | null) => void) => {
      if (name === 'stdout' && lost !== null) done?.(lost);
      else {
        said[name] += String(text);
        done?.();
      }
      return true;
    }) as typeof process.stdout.write);
  }
});
afterEach(() => vi.restoreAllMocks());

describe('a secret that is shown only once', () => {
  const print = (revoke: () => Promise<void> = async () => {}) =>
    printOnlyCopy({ what: 'the key web', text: 'cpn_secret', revoke, remedy: 'cpn key revoke 1 web' });

  it('is printed, and stays valid', async () => {
    const revoke = vi.fn(async () => {});
    await print(revoke);
    expect([said.stdout, revoke.mock.calls.length]).toEqual(['cpn_secret\n', 0]);
  });

  it('is revoked where it cannot be written, which remains a failure', async () => {
    lost = Object.assign(new Error('EPIPE'), { code: 'EPIPE' });
    const revoke = vi.fn(async () => {});
    await expect(print(revoke)).rejects.toThrow(DiskFailed);
    expect([revoke.mock.calls.length, said.stderr]).toEqual([1, expect.stringContaining('the key web was revoked')]);
    expect(said.stderr).not.toContain('cpn_secret');
  });

  it('has its remedy in the warning where it cannot be revoked either', async () => {
    lost = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
    await expect(print(() => Promise.reject(new Refused(403, 'x', 'no', null)))).rejects.toThrow(DiskFailed);
    expect(said.stderr).toContain('it was not revoked');
    expect(said.stderr).toContain('run: cpn key revoke 1 web');
    await expect(print(() => Promise.reject(new TypeError('a bug')))).rejects.toThrow('a bug');
  });

  it.each([
    [0o600, false],
    [0o640, false],
    [0o644, true],
  ])('in a file of the mode %o is warned about: %j', async (mode, isWarned) => {
    const path = join(memory, `cpn-only-copy-${process.pid}`);
    const file = openSync(path, 'w');
    const { fd } = process.stdout;
    try {
      fchmodSync(file, mode);
      Object.assign(process.stdout, { fd: file });
      await print();
    } finally {
      Object.assign(process.stdout, { fd });
      closeSync(file);
      rmSync(path);
    }
    expect(said.stderr.includes('other users can read the file to which the key web is written')).toBe(isWarned);
  });
});
