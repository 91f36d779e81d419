import { ownPath } from './client.ts';

/** Browsers open six HTTP/1.1 connections per origin for all windows. Three are for clicks. */
const mostWaits = 3;

/**
 * Takes the right to wait for a resource, and returns the function that releases it. Null if
 * another window waits for it, at the maximum of waits, or without locks (http to another host).
 * The browser releases the locks of a closed or discarded window.
 */
export async function takeTurn(path: string): Promise<(() => Promise<void>) | null> {
  const release = await takeLock(`cpn wait ${ownPath()}${path}`);
  if (release === null) return null;
  for (let place = 0; place < mostWaits; place += 1) {
    const releasePlace = await takeLock(`cpn wait ${place}`);
    if (releasePlace !== null) return () => Promise.all([releasePlace(), release()]).then(() => undefined);
  }
  await release();
  return null;
}

/** Takes a lock of this origin if it is free. Returns the function that releases it. */
function takeLock(name: string): Promise<(() => Promise<void>) | null> {
  // Only available in secure contexts.
  const locks: LockManager | undefined = navigator.locks;
  if (locks === undefined) return Promise.resolve(null);
  return new Promise((resolve) => {
    const released = locks
      .request(name, { ifAvailable: true }, (lock) => {
        if (lock === null) return resolve(null);
        return new Promise<void>((end) => {
          resolve(() => {
            end();
            return released;
          });
        });
      })
      // A browser without storage for this page has no locks either.
      .catch(() => resolve(null));
  });
}

/** Announces the path of each changed resource. Other windows read it with their own session. */
const changes = new BroadcastChannel(`cpn changes ${ownPath()}`);
const onChange = new Set<(path: unknown) => void>();
changes.onmessage = ({ data }) => {
  for (const listener of onChange) listener(data);
};

export const announceChange = (path: string) => changes.postMessage(path);

export function watchChanges(path: string, stopped: AbortSignal): { next(ms: number): Promise<void> } {
  let isAnnounced = false;
  let wake = () => {};
  const listener = (announced: unknown) => {
    if (announced !== path) return;
    isAnnounced = true;
    wake();
  };
  onChange.add(listener);
  stopped.addEventListener('abort', () => {
    onChange.delete(listener);
    wake();
  });
  return {
    /** Resolves at the first announcement since the last call, or after `ms` milliseconds. */
    async next(ms) {
      if (!isAnnounced && !stopped.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isAnnounced = false;
    },
  };
}
