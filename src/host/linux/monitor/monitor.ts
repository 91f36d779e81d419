import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, backoffDelay } from '../../../core/util/backoff.ts';
import { eventsLost, type HostEvent, type Watch } from '../../host.ts';
import type { Child, Start } from '../../process/run.ts';

/** A tool that prints a line for each change that the kernel reports, until it is stopped. */
export interface Monitor {
  readonly tool: Parameters<Start>[0];
  readonly args: readonly string[];
  /** The protocol of its netlink socket (linux/netlink.h). */
  readonly protocol: number;
  /** Null for a line without a relevant change. */
  parse(line: string): HostEvent | null;
  /** True if the line reports that the kernel dropped messages of a full socket (ENOBUFS). */
  isLossReport(line: string): boolean;
}

/** The minimum delay before a restart, because full jitter may be 0. */
const minDelayMs = 100;
const defaultBackoff: Backoff = { baseMs: 500, capMs: 60_000 };

/**
 * Calls `listener` with the events of one child. Restarts a child that ended or lost messages, and
 * then reports {@link eventsLost}, until closed. @throws MissingTool if the first start fails
 */
export async function runMonitor(
  monitor: Monitor,
  listener: (event: HostEvent) => void,
  start: Start,
  backoff = defaultBackoff,
): Promise<Watch> {
  const closing = new AbortController();
  const { signal } = closing;
  const open = async () => {
    const child = await start(monitor.tool, monitor.args, (line) => {
      // After a loss, the kernel drops more messages without a report until all are read. Only a
      // new socket is reliable.
      if (line === null || monitor.isLossReport(line)) return void child.close();
      const event = monitor.parse(line);
      if (event && !signal.aborted) listener(event);
    });
    await waitUntilListening(child, monitor.protocol, signal);
    return child;
  };
  let child = await open();

  const loop = async () => {
    let attempt = 0;
    while (!signal.aborted) {
      const since = performance.now();
      await child.ended;
      attempt = performance.now() - since > backoff.capMs ? 1 : attempt + 1;
      const delay = minDelayMs + backoffDelay(attempt, backoff, Math.random());
      await sleep(delay, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      // If the tool is missing, the ended child stays, so the backoff grows.
      child = await open().catch(() => child);
      if (signal.aborted) await child.close();
      else listener(eventsLost);
    }
  };
  const ended = loop();

  return {
    close: async () => {
      closing.abort();
      await child.close();
      await ended;
    },
  };
}

/** 100 checks of 10 ms, enough for any tool. Then the watch starts: events are only hints. */
const maxChecks = 100;
const checkIntervalMs = 10;

async function waitUntilListening({ pid, ended }: Child, protocol: number, signal: AbortSignal): Promise<void> {
  let hasEnded = pid === undefined;
  void ended.then(() => {
    hasEnded = true;
  });
  for (let check = 0; check < maxChecks && !hasEnded && !signal.aborted; check += 1) {
    if (await isListening(pid, protocol)) return;
    await sleep(checkIntervalMs);
  }
}

/** True if the process has a netlink socket of the protocol in a group. Its port is the pid. */
async function isListening(pid: number | undefined, wanted: number): Promise<boolean> {
  const sockets = await readFile('/proc/net/netlink', 'utf8').catch(() => '');
  return sockets.split('\n').some((socket) => {
    const [, protocol, port, groups = ''] = socket.trim().split(/\s+/);
    return protocol === String(wanted) && port === String(pid) && /[^0]/.test(groups);
  });
}
