import { readdir, readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { printable } from '../../core/errors.ts';
import { isNetworkTool, isRoutineManager } from './routine-managers.ts';

/** One process, as far as it matters here. */
export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** The name by which it was started, without its folder. */
  readonly name: string;
  readonly args: readonly string[];
}

/** More names than these help nobody. */
const mostNamed = 20;

/** Of all processes, read at one time. */
const atOnce = 64;

/** {@link Host.suspects}, from proc(5). */
export async function findSuspects(): Promise<string[]> {
  const own = await namespaceOf('self');
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const processes: Process[] = [];
  for (let start = 0; start < pids.length; start += atOnce) {
    const some = await Promise.all(pids.slice(start, start + atOnce).map(readProcess));
    processes.push(...some.filter((each) => each !== null));
  }
  const named = nameSuspects(processes, process.pid);
  const near = await Promise.all(
    named.map(async (each) => own !== null && (await namespaceOf(String(each.pid))) === own),
  );
  const names = named
    .filter((_, index) => near[index])
    .flatMap(({ startedBy, ...each }) => [each, ...(startedBy ? [startedBy] : [])])
    .map(({ name, pid }) => `${printable(name)} (pid ${pid})`);
  return [...new Set(names)].slice(0, mostNamed);
}

/** A suspect, and for a tool what started it. */
export type Suspect = Process & { readonly startedBy?: Process };

/**
 * Picks those that change networks by themselves, and tools at work that are not ours: not below the process `self`, and not
 * for reading only. The first process of all (pid 1) tells nothing as the one that started a tool.
 */
export function nameSuspects(processes: readonly Process[], self: number): Suspect[] {
  const all = new Map(processes.map((each) => [each.pid, each]));
  return processes.flatMap((each): Suspect[] => {
    if (each.pid === self || isBelow(each, self, all)) return [];
    if (isRoutineManager(each.name)) return [each];
    if (!isNetworkTool(each.name) || each.args.some((arg) => onlyReads.has(arg))) return [];
    const startedBy = each.parent === 1 ? undefined : all.get(each.parent);
    return [startedBy ? { ...each, startedBy } : each];
  });
}

/** Arguments of a tool that changes nothing. */
const onlyReads = new Set(['monitor', 'show', 'list', 'get', '-L', '-S']);

/** How far to look: pids are reused, so that what was read at two times may even be a ring. */
const mostGenerations = 64;

function isBelow({ parent }: Process, ancestor: number, all: ReadonlyMap<number, Process>): boolean {
  for (let generation = 0, pid: number | undefined = parent; pid && generation < mostGenerations; generation += 1) {
    if (pid === ancestor) return true;
    pid = all.get(pid)?.parent;
  }
  return false;
}

/** Null for a thread of the kernel's, and for what cannot be read. */
async function readProcess(pid: string): Promise<Process | null> {
  try {
    const [status, line] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ]);
    return parseProcess(status, line);
  } catch {
    return null;
  }
}

/** Reads /proc/PID/stat and /proc/PID/cmdline (proc_pid_stat(5)). The name in `stat` may hold spaces and brackets. */
export function parseProcess(status: string, line: string): Process | null {
  const [, pid, comm = '', parent] = /^(\d+) \((.*)\) \S (\d+) /s.exec(status) ?? [];
  const args = line.replace(/\0$/, '').split('\0');
  if (pid === undefined || line === '') return null;
  return { pid: Number(pid), parent: Number(parent), name: fullName(comm, args), args };
}

/** TASK_COMM_LEN of the kernel's linux/sched.h, without the NUL. */
const mostOfName = 15;

/** The kernel cuts names; the arguments, which the program may have changed, hold the rest. */
function fullName(comm: string, args: readonly string[]): string {
  if (comm.length < mostOfName) return comm;
  const whole = args.map((arg) => basename(arg)).find((name) => name.startsWith(comm));
  return whole ?? comm;
}

/**
 * What is the same for processes of one network namespace: the inode of its device list. The link `ns/net` says it too, but to
 * read that of a process with more rights than ours takes CAP_SYS_PTRACE.
 */
async function namespaceOf(pid: string): Promise<number | null> {
  return stat(`/proc/${pid}/net/dev`).then(
    ({ ino }) => ino,
    () => null,
  );
}
