import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, backoffDelay } from '../../core/backoff.ts';
import { type HostEvent, lookAtEverything, type Watch } from '../host.ts';
import { type Child, type Start, start as startHere } from '../run.ts';
import { parseEvent, tellsLoss } from './parse-event.ts';

/**
 * One line for each event. As text, because `ip -json monitor` prints text too (6.1) or, by version, JSON that is none; and
 * without details, because among these is a link's alias, which may hold a line's end.
 */
const monitorArgs = ['-oneline', 'monitor', 'link', 'address', 'route', 'rule'];

/** Between the end of one `ip monitor` and the next one, at the least: full jitter alone may be no wait at all. */
const restMs = 100;
const patience: Backoff = { baseMs: 500, capMs: 60_000 };

/** {@link Host.watch} through one `ip monitor`, which is replaced when it ends or has lost something. */
export async function watchEvents(
  listener: (event: HostEvent) => void,
  start: Start = startHere,
  backoff = patience,
): Promise<Watch> {
  const closing = new AbortController();
  const { signal } = closing;
  const open = async () => {
    const child = await start('ip', monitorArgs, (line) => {
      // After a loss the kernel drops, without a word, what happens until all is read: only a new socket tells of it.
      if (line === null || tellsLoss(line)) return void child.close();
      const event = parseEvent(line);
      if (event && !signal.aborted) listener(event);
    });
    await untilListening(child, signal);
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

/** Long enough for any `ip` to start; without a sign of it we go on, as events are only hints. */
const mostLooks = 100;
const lookMs = 10;

async function untilListening({ pid, ended }: Child, signal: AbortSignal): Promise<void> {
  let gone = pid === undefined;
  void ended.then(() => {
    gone = true;
  });
  for (let look = 0; look < mostLooks && !gone && !signal.aborted; look += 1) {
    if (await isListening(pid)) return;
    await sleep(lookMs);
  }
}

/** Whether the process has a netlink socket that joined groups of NETLINK_ROUTE (0); the kernel names it by the pid. */
async function isListening(pid: number | undefined): Promise<boolean> {
  const sockets = await readFile('/proc/net/netlink', 'utf8').catch(() => '');
  return sockets.split('\n').some((socket) => {
    const [, protocol, port, groups = ''] = socket.trim().split(/\s+/);
    return protocol === '0' && port === String(pid) && /[^0]/.test(groups);
  });
}
