import { chown, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { findNewer, isFromFuture } from '../../../../src/host/linux/dns/fresh-settings.ts';
import { isOfOthers } from '../../../../src/host/linux/dns/resolvers.ts';

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-fresh-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  path = join(folder, 'site.conf');
  await writeFile(path, 'user=x\n');
});

it('finds a file that changed after the start, whatever the time of modification', async () => {
  for (const since of [-60_000, -1000]) expect(findNewer(['/none', path], Date.now() + since)).toBe(path);
  // As of `cp -p` or an archive.
  await utimes(path, 0, 0);
  expect(findNewer([path], Date.now() - 1000)).toBe(path);
});

it('finds no device: those of a sandbox are new', () => {
  expect(findNewer(['/dev/null'], 0)).toBeNull();
});

it('finds no older file', () => {
  expect(findNewer([path, '/none'], Date.now() + 100)).toBeNull();
});

it('knows a change by a clock that was ahead', () => {
  expect(isFromFuture(path)).toBe(false);
  vi.useFakeTimers({ now: Date.now() - 3_600_000, toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  expect(isFromFuture(path)).toBe(true);
});

it('finds a newer link to an older file', async () => {
  const link = join(folder, 'link.conf');
  await symlink('/proc/self/none', link);
  expect(findNewer([link], Date.now() - 1000)).toBe(link);
});

it('finds a file of another user', async () => {
  expect(isOfOthers(path)).toBe(false);
  expect(isOfOthers('/none')).toBe(false);
  expect(isOfOthers('/dev/null')).toBe(false);
  await chown(path, 1000, 1000);
  expect(isOfOthers(path)).toBe(true);
});

it('finds a copy of a file of ours', async () => {
  await writeFile(path, '# cpn cpn7 (written by cpn; edits are lost)\n');
  expect(findNewer([path], Date.now() - 1000)).toBe(path);
});
