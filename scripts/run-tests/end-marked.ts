import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/**
 * Milliseconds for a process to end after SIGTERM; scripts/vm-test removes a container of some
 * hundred MB.
 */
const MOST_END = 15_000;

/**
 * Ends every process that started with this variable, `NAME=value`, in its environment: first with
 * SIGTERM, then with SIGKILL. Children inherit a variable in every session and after their parents
 * are gone, so a value of its own marks all of them.
 */
export async function endMarked(variable: string, mostMs = MOST_END): Promise<void> {
  const deadline = performance.now() + mostMs;
  let left = findMarked(variable);
  for (const pid of left) send(pid, 'SIGTERM');
  while (left.length > 0 && performance.now() < deadline) {
    await setTimeout(50);
    left = findMarked(variable);
  }
  for (const pid of left) send(pid, 'SIGKILL');
}

/** The processes with this variable; zombies have no environment any more. */
function findMarked(variable: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => readEnvironment(pid).includes(variable)).map(Number);
}

function readEnvironment(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    // It ended meanwhile, or belongs to another user.
    return [];
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended meanwhile.
  }
}
