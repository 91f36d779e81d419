import { type FSWatcher, watch } from 'node:fs';
import type { HostEvent, Watch } from '../../host.ts';

/**
 * The folder in which systemd-resolved writes resolv.conf again, or at least a temporary file, for
 * each change of its servers (252, measured). Its settings for each interface are in a folder that
 * only its own user reads.
 */
export const resolverFolder = '/run/systemd/resolve';

/** Milliseconds between attempts to watch a folder that does not exist. */
const retryMs = 2_000;

/**
 * Reports changes of systemd-resolved's servers, as events of kind `dns`: its D-Bus signals would
 * need a process. Watches the folder from its creation on.
 */
export function watchResolver(listener: (event: HostEvent) => void, path = resolverFolder): Watch {
  let watcher: FSWatcher | null = null;
  const report = () => listener({ kind: 'dns', link: null, removed: false });
  const stop = () => {
    watcher?.close();
    watcher = null;
  };
  const open = () => {
    try {
      watcher = watch(path, { persistent: false }, report).on('error', stop);
      return true;
    } catch {
      return false;
    }
  };
  open();
  const timer = setInterval(() => {
    if (watcher === null && open()) report();
  }, retryMs);
  timer.unref();
  return {
    close: async () => {
      clearInterval(timer);
      stop();
    },
  };
}
