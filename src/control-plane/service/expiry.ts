import { lockOrganizationOf } from '../store/networks.ts';
import { dropPeer } from '../store/peers/drop-peer.ts';
import {
  findNextExpiry,
  listExpired,
  listNetworksWithExpired,
  listNetworksWithUnapproved,
  listUnapproved,
} from '../store/peers/peer-lists.ts';
import { updatePeer } from '../store/peers/peers.ts';
import { record, system } from './audit.ts';
import type { Context } from './context.ts';
import { peerEvent, withRevision } from './with-revision.ts';

/**
 * Removes every expired peer from its map, and peers that were not approved. Returns when the next
 * one expires; null for none.
 */
export async function expirePeers(context: Context): Promise<string | null> {
  const now = context.now().toISOString();
  for (const network of await listNetworksWithExpired(context.db, now)) await expireIn(context, network, now);
  await removeUnapproved(context);
  return findNextExpiry(context.db);
}

/** Of several processes on one database, only the first to lock the network finds expired peers. */
async function expireIn(context: Context, network: number, now: string): Promise<void> {
  await withRevision(context, async (transaction, revise, append) => {
    const organizationId = await lockOrganizationOf(transaction, network);
    if (organizationId === undefined) return;
    const due = await listExpired(transaction, network, now);
    if (due.length === 0) return;
    const recordChange = await revise(network);
    const author = { organizationId, actor: system, address: null, readTime: context.readTime };
    for (const { id, name } of due) {
      await updatePeer(transaction, network, id, { expired: 1 });
      await recordChange(id);
      append(network, peerEvent('peer.removed', { id, name }, { reason: 'expired' }));
      await record(transaction, author, {
        action: 'peer.expire',
        target: { kind: 'peer', id, name },
        details: { network },
      });
    }
  });
}

/** A peer without approval is removed after a week. */
const longestWaitMs = 7 * 86_400_000;

/** Removes peers that waited for a week. */
async function removeUnapproved(context: Context): Promise<void> {
  const before = new Date(context.now().getTime() - longestWaitMs).toISOString();
  for (const network of await listNetworksWithUnapproved(context.db, before))
    await removeUnapprovedIn(context, network, before);
}

/** Of several processes on one database, only the first to lock the network finds them. */
async function removeUnapprovedIn(context: Context, network: number, before: string): Promise<void> {
  await withRevision(context, async (transaction, _revise, append) => {
    const organizationId = await lockOrganizationOf(transaction, network);
    if (organizationId === undefined) return;
    const author = { organizationId, actor: system, address: null, readTime: context.readTime };
    for (const { id, name, address } of await listUnapproved(transaction, network, before)) {
      await dropPeer(context.now(), transaction, network, id);
      append(network, peerEvent('peer.removed', { id, name }, { reason: 'not_approved' }));
      await record(transaction, author, {
        action: 'peer.delete',
        target: { kind: 'peer', id, name },
        details: { network, address, reason: 'not_approved' },
      });
    }
  });
}

export interface ExpiryTimer {
  /** Runs now. Must be called when something may expire earlier than all others. */
  reschedule(): void;
  stop(): Promise<void>;
}

/** The longest pause: another process may change an expiry, and the clock may be set. */
const maxDelayMs = 60_000;

/**
 * Runs `expire` now and whenever something expires. Failures go to `onFailure`; the next run
 * retries.
 */
export function startExpiry(
  expire: () => Promise<string | null>,
  now: () => Date,
  onFailure: (error: unknown) => void,
  longestPauseMs = maxDelayMs,
): ExpiryTimer {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let [isQueued, isStopped] = [false, false];
  const run = async () => {
    isQueued = false;
    if (isStopped) return;
    const next = await expire().catch((error: unknown) => {
      onFailure(error);
      return null;
    });
    const ms = next === null ? longestPauseMs : Date.parse(next) - now().getTime();
    clearTimeout(timer);
    if (isStopped) return;
    timer = setTimeout(reschedule, Math.min(Math.max(ms, 1), longestPauseMs));
    timer.unref();
  };
  const reschedule = () => {
    if (isQueued) return;
    isQueued = true;
    running = running.then(run);
  };
  reschedule();
  return {
    reschedule,
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      return running;
    },
  };
}
