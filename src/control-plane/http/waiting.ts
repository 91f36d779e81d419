import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../domain/caller.ts';
import { callerOf } from './app.ts';

export interface RequestWait {
  /** Ends the wait. A request without a wait has an aborted signal. */
  readonly signal: AbortSignal;
  readonly isDisconnected: () => boolean;
  readonly end: () => void;
}

/**
 * Runs the work of requests that may wait `seconds` (null for no wait), and sets the headers that
 * show whether a request waited. The work returns null if its client has disconnected.
 */
export function createWaiting() {
  const addWait = createWaitLimit();
  return async <Result>(
    request: Pick<FastifyRequest, 'caller'>,
    response: Pick<FastifyReply, 'raw' | 'header'>,
    seconds: number | null,
    work: (wait: RequestWait) => Promise<Result | null>,
  ): Promise<Result | null> => {
    const { signal, isDisconnected, end, release } = startWait(response.raw, seconds ?? 0);
    let isApplied = seconds !== null;
    const endEarly = () => {
      isApplied = false;
      end();
    };
    const removeWait = signal.aborted ? () => {} : addWait(callerOf(request), endEarly);
    const result = await work({ signal, isDisconnected, end }).finally(release).finally(removeWait);
    if (result === null) return null;
    if (isApplied) response.header('preference-applied', `wait=${seconds}`);
    // A client that keeps the connection could wait on it again.
    else if (seconds !== null) response.header('connection', 'close');
    return result;
  };
}

/** A signal that aborts after `seconds`, when the client disconnects, and on release. */
function startWait(response: ServerResponse, seconds: number) {
  const end = new AbortController();
  // Without a reason, each abort would create an error with a stack.
  const abort = () => end.abort('over');
  let disconnected = response.destroyed;
  const leave = () => {
    disconnected = true;
    abort();
  };
  response.once('close', leave);
  const timer = seconds > 0 && !disconnected ? setTimeout(abort, seconds * 1000) : undefined;
  if (timer === undefined) abort();
  const release = () => {
    clearTimeout(timer);
    response.removeListener('close', leave);
    abort();
  };
  return { signal: end.signal, isDisconnected: () => disconnected, end: abort, release };
}

/** Concurrent long polls of a peer and a user. A host has one, and perhaps an old lost one. */
export const maxWaits = { peer: 8, user: 200 } as const;

/**
 * Limits each caller's long polls, because each takes a connection. The function adds a wait, calls
 * `end` of the oldest one beyond the limit, and returns a function that removes the wait.
 */
export function createWaitLimit(most: Readonly<Record<Caller['kind'], number>> = maxWaits) {
  /** The `end` functions of each caller, oldest first. */
  const held = new Map<string, Set<() => void>>();
  return (caller: Caller, end: () => void): (() => void) => {
    const key = `${caller.kind} ${caller.kind === 'peer' ? caller.peerId : caller.userId}`;
    const ends = held.get(key) ?? new Set();
    held.set(key, ends);
    const [oldest] = ends;
    if (oldest !== undefined && ends.size >= most[caller.kind]) {
      ends.delete(oldest);
      oldest();
    }
    ends.add(end);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && held.get(key) === ends) held.delete(key);
    };
  };
}
