import type { DeletionOutcome } from '../../contract/removal.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { hashToken } from '../domain/tokens.ts';
import { NetworkDeleted } from '../errors.ts';
import { findDeletedPeer, saveOutcome } from '../store/deletions.ts';
import type { Context } from './context.ts';

/** What a host says of deletions with its request: `follow` to take its tunnel down for one, `applied` once it has. */
export type DeletionRequest = 'follow' | 'applied';

/**
 * Refuses a token that was one of a deleted network, for a host that takes its tunnel down then. It notes what the request shows of the
 * host. For any other token, and for a host of an earlier version, it does nothing: the caller refuses those as always.
 *
 * @throws NetworkDeleted
 */
export async function refuseDeleted(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  token: Secret,
  network: number,
  request: DeletionRequest | null,
): Promise<void> {
  const peer = await findDeletedPeer(db, network, hashToken(token));
  if (peer === undefined) return;
  const outcome: DeletionOutcome = request === null ? 'unsupported' : request === 'applied' ? 'applied' : 'stated';
  // The time of the last request is shown until the host confirms.
  if (outcome !== peer.outcome || outcome !== 'applied') {
    // A database that cannot be written, its disk being full, can be read still.
    const at = await readTime(db);
    await saveOutcome(db, peer.id, outcome, at.toISOString()).catch(() => undefined);
  }
  if (request !== null) throw new NetworkDeleted(peer.network_id, peer.nonce);
}
