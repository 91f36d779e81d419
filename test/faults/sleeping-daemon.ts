import { glob, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { builtProgram } from '../lab/built-program.ts';
import { Daemon } from '../lab/daemon.ts';
import type { Host } from '../lab/host.ts';

/** `cpn run` with a wall clock of its own, for which time can pass as while a host sleeps: other clocks do not notice. */
export interface SleepingDaemon {
  readonly daemon: Daemon;
  /** Sets its wall clock this much ahead of the others. */
  sleep(seconds: number): Promise<void>;
}

/** Starts it, by means of libfaketime. What it starts itself has the true time. */
export async function startSleepingDaemon(host: Host, ...flags: string[]): Promise<SleepingDaemon> {
  const clock = join(host.folder, 'clock');
  const sleep = async (seconds: number) => {
    // Renamed, because it is read whenever the clock is.
    await writeFile(`${clock}.new`, `+${seconds}\n`);
    await rename(`${clock}.new`, clock);
  };
  await sleep(0);
  const settings = {
    LD_PRELOAD: await findLibrary(),
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
  const env = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  return { daemon: new Daemon(host.spawn(['env', ...env, await builtProgram(), 'run', ...flags])), sleep };
}

/** Debian has it in a folder named after the architecture. */
async function findLibrary(): Promise<string> {
  for await (const path of glob('/usr/lib/*/faketime/libfaketimeMT.so.1')) return path;
  throw new Error('no libfaketime on this machine: run scripts/setup');
}
