import { setTimeout as sleep } from 'node:timers/promises';
import type { PendingHost, RemovalStatus } from '../../contract/removal.ts';
import type { Caller } from '../domain/caller.ts';
import { findDeletion, listUnconfirmed, type UnconfirmedHost } from '../store/deletions.ts';
import { findLastRemoval, listPending } from '../store/removals.ts';
import type { Db } from '../store/tables.ts';
import type { Context } from './context.ts';
import { requireNetwork } from './networks.ts';

export interface RemovalsRequest {
  /** Ends the wait. A request without a wait passes an aborted signal. */
  readonly signal: AbortSignal;
  readonly isDisconnected: () => boolean;
  /** Authenticates the request again: a wait may outlive the rights of its caller. */
  readonly authenticate: () => Promise<Caller>;
}

/** Milliseconds between two reads during a wait: any process may store an acknowledgement. */
const pauseMs = 250;
/** Milliseconds after which a silent host is not expected to acknowledge soon. */
const silenceMs = 120_000;

/**
 * Lists the hosts that have not acknowledged the last removal, or the deletion of the network.
 * Waits while one of them may do so. Null if the client has disconnected.
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
