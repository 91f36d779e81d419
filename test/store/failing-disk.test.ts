import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { labPath, labSupport } from '../lab/support.ts';

/** What failing-disk.ts saw. */
async function runOnDisk(how: 'full' | 'read-only') {
  const support = labSupport();
  if (!support.possible) throw new Error(`no disk of our own on this machine: ${support.needs}`);
  const user = support.how === 'user namespace' ? ['--user', '--map-root-user'] : [];
  const script = join(import.meta.dirname, 'failing-disk.ts');
  const argv = [...user, '--mount', '--', process.execPath, script, how];
  const options = { env: { PATH: labPath() }, timeout: 50_000 };
  return JSON.parse((await promisify(execFile)('unshare', argv, options)).stdout);
}

describe.each([
  ['full', 'ENOSPC', 'no space left on device'],
  ['read-only', 'EROFS', 'read-only file system'],
] as const)('a disk that is %s', (how, code, words) => {
  it('does not stop a daemon, and has everything once it works again', async () => {
    const seen = await runOnDisk(how);
    expect(seen.refusals).toEqual([code, code, code]);
    expect(seen.claimed).toBe('claimed');
    const newest = { listed: [true], read: true, config: 'new' };
    expect(seen.meanwhile).toEqual({ memory: newest, disk: { read: false, config: 'old' } });
    expect(seen.unchanged).toEqual(seen.meanwhile);
    expect(seen.after).toEqual({ memory: newest, disk: { read: true, config: 'new' } });
    expect(seen.events).toEqual([expect.stringContaining(`${words} (${code})`), 'recovered']);
  });
});
