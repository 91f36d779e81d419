import { join } from 'node:path';
import type { HostEvent } from '../../src/host/host.ts';
import type { Process } from '../lab/process.ts';
import type { Machine } from './machine.ts';
import type { Mark, Watched } from './watcher.ts';

export const bounded = { timeout: 20_000, interval: 50 };

/** A watcher inside the machine that has begun to watch. */
export async function startWatcher(machine: Machine, watched: Watched = 'watch'): Promise<Process> {
  const watcher = machine.start(join(import.meta.dirname, 'watcher.ts'), watched);
  await sees(watcher, 'watching');
  return watcher;
}

export async function sees(watcher: Process, mark: Mark): Promise<void> {
  await watcher.waitForLine(new RegExp(`^${mark}$`), bounded.timeout);
}

/** Waits for such an event after those that were waited for. */
export async function meets(
  watcher: Process,
  kind: HostEvent['kind'],
  link: string | null,
  removed = false,
): Promise<void> {
  await watcher.waitForLine(new RegExp(`^${JSON.stringify({ kind, link, removed })}$`), bounded.timeout);
}

/** The events that it printed so far. */
export function eventsOf({ output }: Process): HostEvent[] {
  return output.stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as HostEvent] : []));
}

/** The ids, inside, of the processes whose arguments begin so. */
export async function pidsOf(machine: Machine, args: string): Promise<string[]> {
  const lines = (await machine.sh('ps -ww -eo pid=,args=')).split('\n').map((line) => line.trim().split(/\s+/));
  const wanted = args.split(' ');
  return lines
    .filter(([, tool = '', ...rest]) => [tool.split('/').at(-1), ...rest].slice(0, wanted.length).join(' ') === args)
    .map(([pid = '']) => pid);
}
