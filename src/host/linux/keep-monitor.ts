import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, backoffDelay } from '../../core/backoff.ts';
import { type HostEvent, lookAtEverything, type Watch } from '../host.ts';
import type { Child, Start } from '../run.ts';

/** A tool that prints a line for each change that the kernel announces, until it is ended. */
export interface Monitor {
  readonly tool: Parameters<Start>[0];
  readonly args: readonly string[];
  /** The netlink protocol that it listens to (linux/netlink.h). */
  readonly protocol: number;
  /** What a line tells; null for one that tells of no change that matters. */
  read(line: string): HostEvent | null;
  /** Whether the tool says that the kernel had more to tell than the socket could hold (ENOBUFS). */
  tellsLoss(line: string): boolean;
}

/** Between the end of one child and the next one, at the least: full jitter alone may be no wait at all. */
const restMs = 100;
const patience: Backoff = { baseMs: 500, capMs: 60_000 };

/**
 * Calls `listener` with what one child of `monitor` tells. A child that ends or has lost something is replaced, and
 * {@link lookAtEverything} tells of the gap. Throws MissingTool at the beginning; later it tries again until it is closed.
 */
export async function keepMonitor(
  monitor: Monitor,
  listener: (event: HostEvent) => void,
  start: Start,
  backoff = patience,
): Promise<Watch> {
  const closing = new AbortController();
  const { signal } = closing;
  const open = async () => {
    const child = await start(monitor.tool, monitor.args, (line) => {
      // After a loss the kernel drops, without a word, what happens until all is read: only a new socket tells of it.
      if (line === null || monitor.tellsLoss(line)) return void child.close();
      const event = monitor.read(line);
      if (event && !signal.aborted) listener(event);
    });
    await untilListening(child, monitor.protocol, signal);
    return child;
  };
  let child = await open();

  const keep = async () => {
    let attempt = 0;
    while (!signal.aborted) {
      const since = performance.now();
      await child.ended;
      attempt = performance.now() - since > backoff.capMs ? 1 : attempt + 1;
      const delay = restMs + backoffDelay(attempt, backoff, Math.random());
      await sleep(delay, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      // Without the tool, the child that ended stays, and so does the count.
      child = await open().catch(() => child);
      if (signal.aborted) await child.close();
      else listener(lookAtEverything);
    }
  };
  const kept = keep();

  return {
    close: async () => {
      closing.abort();
      await child.close();
      await kept;
    },
  };
}

/** Long enough for any tool to start; without a sign of it we go on, as events are only hints. */
const mostLooks = 100;
const lookMs = 10;

async function untilListening({ pid, ended }: Child, protocol: number, signal: AbortSignal): Promise<void> {
  let gone = pid === undefined;
  void ended.then(() => {
    gone = true;
  });
  for (let look = 0; look < mostLooks && !gone && !signal.aborted; look += 1) {
    if (await isListening(pid, protocol)) return;
    await sleep(lookMs);
  }
}

/** Whether the process has a netlink socket that joined groups of the protocol; the kernel names it by the pid. */
async function isListening(pid: number | undefined, wanted: number): Promise<boolean> {
  const sockets = await readFile('/proc/net/netlink', 'utf8').catch(() => '');
  return sockets.split('\n').some((socket) => {
    const [, protocol, port, groups = ''] = socket.trim().split(/\s+/);
    return protocol === String(wanted) && port === String(pid) && /[^0]/.test(groups);
  });
}
