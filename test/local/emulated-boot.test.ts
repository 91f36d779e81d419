import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
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
