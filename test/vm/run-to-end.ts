import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, statSync } from 'node:fs';

/** A host that writes nothing to its console for so long hangs. The steps have a shorter limit of their own, and each writes a line. */
const silenceMs = 600_000;

/** A boot that takes longer does not end. */
const longestMs = 1_200_000;

/** More boots than a scenario has: such a host restarts again and again. */
export const mostBoots = 10;

/** The kernel's reports, one in about 28 s, after which a boot that no step has begun in does not go on. */
const mostLockups = 4;

/** Whether a kernel locked up before the first line of a boot's steps: `text` is what the boot wrote to its console. */
export function isLockedUp(text: string): boolean {
  return !text.includes('vm-test: boot') && text.split('BUG: soft lockup').length > mostLockups;
}

/** What a host wrote to its console after the first `size` bytes. */
export function readConsole(console: string, size: number): string {
  return existsSync(console) ? readFileSync(console).subarray(size).toString('utf8') : '';
}

/**
 * Runs one boot of a host to its end, and kills it when it hangs, when this process ends or when `signal` aborts.
 *
 * @returns its exit code
 * @throws the reason of `signal`
 */
export function runToEnd(
  argv: readonly string[],
  console: string,
  { signal, ...options }: SpawnOptions,
): Promise<number | null> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  const started = Date.now();
  const size = sizeOf(console);
  // The kernel ends the child where this process is killed; systemd-nspawn then shuts its container down.
  const child = spawn('setpriv', ['--pdeathsig', 'TERM', ...argv], options);
  const kill = () => killTree(child);
  const watch = setInterval(() => {
    const why = whyKill(console, size, started);
    if (why === null) return;
    clearInterval(watch);
    appendFileSync(console, `\nvm-test: killed from outside: ${why}\n`);
    kill();
  }, 1000);
  process.once('exit', kill);
  signal?.addEventListener('abort', kill);
  child.once('error', reject);
  child.once('exit', (code) => {
    clearInterval(watch);
    process.off('exit', kill);
    signal?.removeEventListener('abort', kill);
    if (signal?.aborted) reject(signal.reason);
    else resolve(code);
  });
  return promise;
}

/** Kills a process and its children: process 1 of a container goes on without the systemd-nspawn that started it. */
function killTree(parent: ChildProcess): void {
  for (const pid of listChildren(parent.pid)) process.kill(pid, 'SIGKILL');
  parent.kill('SIGKILL');
}

function listChildren(pid: number | undefined): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children
      .split(' ')
      .filter((each) => each !== '')
      .map(Number);
  } catch {
    // The process has ended.
    return [];
  }
}

function whyKill(console: string, size: number, started: number): string | null {
  const now = Date.now();
  if (now - started > longestMs) return `no end after ${longestMs / 1000} s`;
  const spoke = Math.max(started, statSync(console, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  if (now - spoke > silenceMs) return `nothing for ${silenceMs / 1000} s`;
  return isLockedUp(readConsole(console, size)) ? 'the kernel locked up' : null;
}

/** The bytes that a console has so far. */
export function sizeOf(console: string): number {
  return statSync(console, { throwIfNoEntry: false })?.size ?? 0;
}
