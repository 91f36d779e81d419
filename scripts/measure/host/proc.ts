import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * MiB of a process that are in memory: all of it, and what it alone has written
 * (proc_pid_smaps(5)).
 */
export interface Memory {
  readonly rss: number;
  readonly privateDirty: number;
}

/**
 * Runs that share one figure of processor time: the kernel counts in ticks of 10 ms, about as long
 * as one run.
 */
export const runsPerFigure = 5;

/** The present memory use of a process. */
export function readMemory(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return { rss: mebibytes(text, 'Rss'), privateDirty: mebibytes(text, 'Private_Dirty') };
}

function mebibytes(text: string, name: string): number {
  const [, kib] = new RegExp(`^${name}: +([0-9]+) kB$`, 'm').exec(text) ?? [];
  if (kib === undefined) throw new Error(`smaps_rollup has no ${name}`);
  return Number(kib) / 1024;
}

/**
 * Milliseconds of processor time by now of a process, of the children that it has waited for, and
 * of those that still run, with theirs. The kernel counts in ticks of 10 ms (proc_pid_stat(5)).
 */
export function readProcessorTime(pid: number): number {
  return readOwnTime(pid) + readChildrenTime(pid);
}

/** The same of the process without its children. */
export function readOwnTime(pid: number): number {
  const [user = 0, system = 0] = readTicks(pid);
  return user + system;
}

/** The same of its children alone. */
export function readChildrenTime(pid: number): number {
  const [, , user = 0, system = 0] = readTicks(pid);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  const running = children.map((child) => orNull(() => readProcessorTime(Number(child))) ?? 0);
  return running.reduce((sum, each) => sum + each, user + system);
}

/** Milliseconds: utime, stime, cutime and cstime. */
function readTicks(pid: number): number[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).map((ticks) => Number(ticks) * 10);
}

/** The process of that name in the same PID namespace as another one. */
export function findSibling(pid: number, name: string): number {
  const home = homeOf(String(pid));
  const found = readdirSync('/proc').find(
    (each) => /^[0-9]+$/.test(each) && homeOf(each) === home && nameOf(each) === name,
  );
  if (found === undefined) throw new Error(`no ${name} runs in the PID namespace of process ${pid}`);
  return Number(found);
}

function homeOf(pid: string): string | null {
  return orNull(() => readlinkSync(`/proc/${pid}/ns/pid`));
}

function nameOf(pid: string): string | null {
  return orNull(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim());
}

/** Null of a process that ended meanwhile. */
function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}
