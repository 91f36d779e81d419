import { type SpawnOptions, spawn } from 'node:child_process';
import { appendFileSync, statSync } from 'node:fs';

/** A host that writes nothing to its console for so long hangs. A step that waits in vain fails sooner, and says so there. */
const silenceMs = 300_000;

/** A boot that takes longer never comes to an end. */
const longestMs = 1_200_000;

/** More boots than a scenario has: the host restarts again and again. */
export const mostBoots = 10;

/** Runs one boot of a host to its end, which comes by force when it hangs, and with our own. @returns its exit code */
export function runToEnd(argv: readonly string[], console: string, options: SpawnOptions): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  const started = Date.now();
  // Also where we have no time to end it.
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
