import { setTimeout as sleep } from 'node:timers/promises';
import type { RemovalStatus } from '../../contract/removal.ts';
import type { Caller } from '../domain/caller.ts';
import { findLastRemoval, listPending, type StoredPending } from '../store/removals.ts';
import type { Context } from './context.ts';
import { requireNetwork } from './networks.ts';

export interface RemovalsRequest {
  /** Ends the wait. A request that does not wait brings an aborted one. */
  readonly signal: AbortSignal;
  readonly isDisconnected: () => boolean;
  /** Authenticates the request again: a wait may outlive the rights of its caller. */
  readonly authenticate: () => Promise<Caller>;
}

/** Milliseconds between two reads while a request waits: acknowledgements reach the database by any process. */
const pauseMs = 250;
/** Milliseconds after which a silent host is not expected to acknowledge anything soon. */
const silenceMs = 120_000;

/** The hosts that have not acknowledged the last removal. Waits while one of them may do so; null when the client has disconnected. */
export async function readRemovals(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  caller: Caller,
  network: number,
  { signal, isDisconnected, authenticate }: RemovalsRequest,
): Promise<RemovalStatus | null> {
  await requireNetwork(db, caller, network);
  for (let isFirst = true; ; isFirst = false) {
    const revision = await findLastRemoval(db, network);
    const pending = revision === null ? [] : await listPending(db, network, revision);
    const since = new Date((await readTime(db)).getTime() - silenceMs).toISOString();
    if (signal.aborted || !pending.some(({ last_seen }) => last_seen !== null && last_seen >= since)) {
      if (!isFirst) await requireNetwork(db, await authenticate(), network);
      return { revision, pending: pending.map(toPendingHost) };
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    if (isDisconnected()) return null;
  }
}

function toPendingHost({ id, name, acknowledged_revision, last_seen }: StoredPending) {
  return { id, name, acknowledged_revision, last_seen };
}
