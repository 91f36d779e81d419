import type { SpawnOptions } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../lab/eventually.ts';
import { isLockedUp, readConsole, runToEnd, sizeOf } from '../vm/run-to-end.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-boot-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const lockup = '[   48.543445] watchdog: BUG: soft lockup - CPU#0 stuck for 45s! [modprobe:122]\n';

test('a boot whose kernel locks up before its first step is killed, and is known as one to start again', async () => {
  const console = join(folder, 'console.log');
  writeFileSync(console, lockup.repeat(9));
  const size = sizeOf(console);
  const script = 'printf "%s" "$1" >>"$2"; exec sleep 600';
  const code = await runToEnd(['sh', '-c', script, 'sh', lockup.repeat(4), console], console, { stdio: 'ignore' });
  expect(code).toBeNull();
  expect(readConsole(console, size)).toContain('killed from outside: the kernel locked up');
  expect(isLockedUp(readConsole(console, size))).toBe(true);
});

test('a lockup that ends, and one within the steps, are not', () => {
  expect(isLockedUp(lockup.repeat(3))).toBe(false);
  expect(isLockedUp(`vm-test: boot 1, 8.42 s after its start\n${lockup.repeat(4)}`)).toBe(false);
});

test('a boot that is interrupted is killed with its children, and throws the reason once it has ended', async () => {
  const interrupted = new AbortController();
  const pids = join(folder, 'pids');
  const options: SpawnOptions = { stdio: 'ignore', signal: interrupted.signal };
  const script = 'sleep 600 & echo $$ $! >"$1.new"; mv "$1.new" "$1"; wait';
  const boot = runToEnd(['sh', '-c', script, 'sh', pids], join(folder, 'console'), options);
  const [parent, child] = await eventually('its processes', () => existsSync(pids) && readPids(pids));
  interrupted.abort(new Error('interrupted by SIGTERM'));
  await expect(boot).rejects.toThrow('interrupted by SIGTERM');
  expect(existsSync(`/proc/${parent}`)).toBe(false);
  await eventually('the end of its child', () => readCommand(child) === '');
});

const readPids = (path: string): number[] => readFileSync(path, 'utf8').trim().split(' ').map(Number);

/** The command line of a process; empty where it has ended, and for a zombie. */
function readCommand(pid: number | undefined): string {
  return existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : '';
}
