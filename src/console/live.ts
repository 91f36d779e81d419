import { effect, type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Event } from '../contract/event.ts';
import type { Health } from '../contract/health.ts';
import type { Network } from '../contract/network.ts';
import { ApiError, isOutage, isOutOfReach, send, sessionsEnded } from './client.ts';
import { mergeEvents, mostEvents, readNetwork } from './logic/network/apply-reply.ts';
import { announceChange, takeTurn, watchChanges } from './shared-waits.ts';

export interface Live<Data> {
  /** Null before the first reply. */
  readonly data: Data | null;
  /** Why changes do not arrive; null while they do, and during an outage. */
  readonly problem: string | null;
}

/** A resource that the API sends again when it changes. */
export interface LiveSource<Data> {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** For a resource without an ETag: the path of the entries after the known ones. */
  after?(before: Data): string;
  /** Reads a reply other than a 304. Null if changes do not apply: then the whole is read again. */
  read(response: Response, before: Data | null): Promise<Data | null>;
}

export const networkSource = (id: number): LiveSource<Network> => ({
  path: `api/networks/${id}`,
  headers: { 'a-im': 'cpn-delta' },
  async read(response, before) {
    return readNetwork(response, (await response.json()).data, before);
  },
});

export const healthSource = (id: number): LiveSource<Health> => ({
  path: `api/networks/${id}/health`,
  read: async (response) => (await response.json()).data,
});

/** The last events of a network, oldest first. */
export const eventSource = (id: number): LiveSource<readonly Event[]> => ({
  path: `api/networks/${id}/events?limit=${mostEvents}`,
  after: (before) => `api/networks/${id}/events?limit=${mostEvents}&after=${before.at(-1)?.id ?? 0}`,
  read: async (response, before) => mergeEvents(before ?? [], (await response.json()).data),
});

/** Limits of a wait, in seconds. `least` is for a gateway that ends longer ones. */
const waitSeconds = { most: 45, least: 5 };
/** Limits of the pause after failures, before jitter. */
const pauseMs = { least: 1000, most: 10_000 };
/** The pause between reads of a window that does not wait, without an announcement. */
const pollMs = 5000;
/** How long a resource is followed after its last component was removed. */
const lingerMs = 1000;

interface Followed {
  readonly state: Signal<Live<unknown>>;
  readonly stop: AbortController;
  users: number;
}

const followed = new Map<string, Followed>();

// Stop all waits. After the next login, everything is read again.
effect(() => {
  if (sessionsEnded.value === 0) return;
  for (const { stop } of followed.values()) stop.abort();
  followed.clear();
});

/** Follows a resource while a component shows it. Components share its requests. */
export function useLive<Data>(source: LiveSource<Data>): Live<Data> {
  const { path } = source;
  useEffect(() => {
    const entry = followed.get(path) ?? start(source);
    entry.users += 1;
    return () => {
      entry.users -= 1;
      // The next page may show the same resource, and is rendered before this one is removed.
      setTimeout(() => {
        if (entry.users > 0) return;
        if (followed.get(path) === entry) followed.delete(path);
        entry.stop.abort();
      }, lingerMs);
    };
  }, [path]);
  // The signal exists before the effect runs, so that the component subscribes at its first render.
  return (followed.get(path) ?? start(source)).state.value as Live<Data>;
}

function start<Data>(source: LiveSource<Data>): Followed {
  const state = signal<Live<Data>>({ data: null, problem: null });
  const entry = { state, stop: new AbortController(), users: 0 };
  followed.set(source.path, entry);
  void follow(source, state, entry.stop.signal);
  return entry;
}

/** One window of this browser waits for changes and announces them; the others read then. */
async function follow<Data>(source: LiveSource<Data>, state: Signal<Live<Data>>, stopped: AbortSignal): Promise<void> {
  const { path, headers = {} } = source;
  const changes = watchChanges(path, stopped);
  let etag: string | null = null;
  let failures = 0;
  let seconds = waitSeconds.most;
  // A gateway may have ended the last wait. The next reply shows if the control plane is reachable.
  let isUnsure = false;
  while (!stopped.aborted) {
    await untilVisible(stopped);
    const { data: before } = state.value;
    const next = before !== null && source.after ? source.after(before) : null;
    // After a failure, the next reply must come immediately.
    const mayWait: boolean = failures === 0 && !isUnsure && (etag !== null || next !== null);
    const release: (() => Promise<void>) | null = mayWait ? await takeTurn(path) : null;
    const isWaiting: boolean = release !== null;
    try {
      const known: Record<string, string> = etag === null ? {} : { ...headers, 'if-none-match': etag };
      if (isWaiting) known.prefer = `wait=${seconds}`;
      const response = await sendWhileVisible(next ?? path, known, stopped).finally(release);
      if (response === null) continue;
      const hasWaited = response.headers.get('preference-applied') !== null;
      const isEarly = isWaiting && !hasWaited && (response.status === 304 || next !== null);
      const data = response.status === 304 ? before : await source.read(response, before);
      if (data === null) {
        etag = null;
        await sleep(1000, stopped);
        continue;
      }
      const isChanged = data !== before;
      if (isChanged || state.value.problem !== null) state.value = { data, problem: null };
      if (isChanged && isWaiting) announceChange(path);
      etag = response.headers.get('etag');
      failures = 0;
      // Something ended the wait early, such as too many open pages.
      if (isEarly || isUnsure) await sleep(1000, stopped);
      else if (mayWait && !isWaiting) await changes.next(pollMs);
      isUnsure = false;
    } catch (error) {
      if (stopped.aborted) return;
      isUnsure = isWaiting && mayBeOfGateway(error);
      if (isTimeout(error)) seconds = Math.max(waitSeconds.least, Math.floor(seconds / 2));
      if (isUnsure) continue;
      failures += 1;
      if (isOutage(error)) isOutOfReach.value = true;
      else state.value = { ...state.value, problem: error instanceof Error ? error.message : String(error) };
      // The resource is gone or forbidden, which does not pass.
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return;
      await sleep(backoff(failures, Math.random()), stopped);
    }
  }
}

/** Sends a request that is aborted when the window is hidden; null then. */
async function sendWhileVisible(
  path: string,
  headers: Readonly<Record<string, string>>,
  stopped: AbortSignal,
): Promise<Response | null> {
  const pause = new AbortController();
  const onHidden = () => document.hidden && pause.abort();
  document.addEventListener('visibilitychange', onHidden);
  try {
    return await send('GET', path, { headers, signal: AbortSignal.any([stopped, pause.signal]) });
  } catch (error) {
    if (pause.signal.aborted) return null;
    throw error;
  } finally {
    document.removeEventListener('visibilitychange', onHidden);
  }
}

/** Milliseconds until the next attempt after consecutive failures. `random` is from 0 to 1. */
function backoff(failures: number, random: number): number {
  const most = Math.min(pauseMs.most, pauseMs.least * 2 ** Math.max(0, failures - 1));
  return Math.round(most * (0.5 + random / 2));
}

const isTimeout = (error: unknown) => error instanceof ApiError && [408, 504].includes(error.status);
/** True if a request failed without the control plane's reply. A truncated reply is no ApiError. */
const mayBeOfGateway = (error: unknown) => !(error instanceof ApiError) || isOutage(error) || isTimeout(error);

function sleep(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    stopped.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function untilVisible(stopped: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const go = () => {
      if (document.hidden && !stopped.aborted) return;
      document.removeEventListener('visibilitychange', go);
      resolve();
    };
    document.addEventListener('visibilitychange', go);
    stopped.addEventListener('abort', go);
  });
}
