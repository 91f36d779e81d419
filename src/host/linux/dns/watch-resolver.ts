import { type FSWatcher, statSync, watch } from 'node:fs';
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
 * Reports changes of the resolver's servers, as events of kind `dns`: D-Bus signals of
 * systemd-resolved would need a process. Watches the folder from its creation on.
 *
 * @param findPath the folder with the settings of the resolver, which may change
 */
export function watchResolver(listener: (event: HostEvent) => void, findPath = () => resolverFolder): Watch {
  let watcher: FSWatcher | null = null;
  let path = findPath();
  /** The folder that is watched, as {@link identify} names it. */
  let watched: string | null = null;
  const report = () => listener({ kind: 'dns', link: null, removed: false });
  const stop = () => {
    watcher?.close();
    watcher = null;
  };
  const open = () => {
    try {
      watcher = watch(path, { persistent: false }, report).on('error', stop);
      watched = identify(path);
      return true;
    } catch {
      return false;
    }
  };
  open();
  const timer = setInterval(() => {
    // A watch of a folder that was deleted reports nothing more.
    if (path !== findPath() || watched !== identify(path)) stop();
    path = findPath();
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

/** Null without the folder. Another folder may get the inode of one that was deleted. */
function identify(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.ino} ${stats.birthtimeMs}`;
}
