import { setTimeout as sleep } from 'node:timers/promises';
import type { Watch } from './host.ts';

/**
 * Calls `look`, which must not throw, every `everyMs` until the watch is closed, never twice at once. What a look finds after its
 * signal aborted is nobody's news any more.
 */
export function lookAgain(everyMs: number, look: (signal: AbortSignal) => Promise<void> | void): Watch {
  const closing = new AbortController();
  const { signal } = closing;

  const keep = async () => {
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await look(signal);
    }
  };
  const kept = keep();

  return {
    close: async () => {
      closing.abort();
      await kept;
    },
  };
}
