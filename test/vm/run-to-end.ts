import { type SpawnOptions, spawn } from 'node:child_process';
import { appendFileSync, statSync } from 'node:fs';

/** A host that writes nothing to its console for so long hangs. The steps have a shorter limit of their own, and each writes a line. */
const silenceMs = 600_000;

/** A boot that takes longer does not end. */
const longestMs = 1_200_000;

/** More boots than a scenario has: such a host restarts again and again. */
export const mostBoots = 10;

/** Runs one boot of a host to its end, and kills it when it hangs, or when this process ends. @returns its exit code */
export function runToEnd(argv: readonly string[], console: string, options: SpawnOptions): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  const started = Date.now();
  // The kernel ends the child where this process is killed.
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], options);
  const kill = () => child.kill('SIGKILL');
  const watch = setInterval(() => {
    const spoke = Math.max(started, statSync(console, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    const isSilent = Date.now() - spoke > silenceMs;
    if (!isSilent && Date.now() - started < longestMs) return;
    clearInterval(watch);
    const why = isSilent ? `nothing for ${silenceMs / 1000} s` : `no end after ${longestMs / 1000} s`;
    appendFileSync(console, `\nvm-test: killed from outside: ${why}\n`);
    kill();
  }, 1000);
  process.once('exit', kill);
  child.once('error', reject);
  child.once('exit', (code) => {
    clearInterval(watch);
    process.off('exit', kill);
    resolve(code);
  });
  return promise;
}
