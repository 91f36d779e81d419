import { setTimeout as sleep } from 'node:timers/promises';
import type { PendingHost, RemovalStatus } from '../../contract/removal.ts';
import type { Caller } from '../domain/caller.ts';
import { findDeletion, listUnconfirmed, type UnconfirmedHost } from '../store/deletions.ts';
import { findLastRemoval, listPending } from '../store/removals.ts';
import type { Db } from '../store/tables.ts';
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

/**
 * The hosts that have not acknowledged the last removal, or the deletion of the network. Waits while one of them may do so; null when the
 * client has disconnected.
 */
export async function readRemovals(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  caller: Caller,
  network: number,
  { signal, isDisconnected, authenticate }: RemovalsRequest,
): Promise<RemovalStatus | null> {
  for (let isFirst = true; ; isFirst = false) {
    const status = await readStatus(db, isFirst ? caller : await authenticate(), network);
    const since = new Date((await readTime(db)).getTime() - silenceMs).toISOString();
    if (signal.aborted || !status.pending.some((host) => mayAcknowledge(host, since))) return status;
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    if (isDisconnected()) return null;
  }
}

function mayAcknowledge({ last_seen, deletion }: PendingHost, since: string): boolean {
  return last_seen !== null && last_seen >= since && deletion !== 'unsupported';
}

async function readStatus(db: Db, caller: Caller, network: number): Promise<RemovalStatus> {
  const deletion = await findDeletion(db, caller.organizationId, network);
  if (deletion !== undefined) {
    const pending = (await listUnconfirmed(db, network)).map(toPendingHost);
    return { revision: null, pending, deleted_at: deletion.deleted_at };
  }
  await requireNetwork(db, caller, network);
  const revision = await findLastRemoval(db, network);
  return { revision, pending: revision === null ? [] : await listPending(db, network, revision) };
}

function toPendingHost({ deletion, ...host }: UnconfirmedHost): PendingHost {
  return { ...host, acknowledged_revision: null, deletion: deletion === 'applied' ? null : deletion };
}
