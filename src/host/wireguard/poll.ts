import { setTimeout as sleep } from 'node:timers/promises';
import type { Watch } from '../host.ts';

/**
 * Calls `poll`, which must not throw, every `everyMs` until the watch is closed, never two at once. After its signal is aborted, a poll
 * must report nothing.
 */
export function pollUntilClosed(everyMs: number, poll: (signal: AbortSignal) => Promise<void> | void): Watch {
  const closing = new AbortController();
  const { signal } = closing;

  const loop = async () => {
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await poll(signal);
    }
  };
  const ended = loop();

  return {
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}
