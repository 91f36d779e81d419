import type { DeletionOutcome } from '../../contract/removal.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { hashToken } from '../domain/tokens.ts';
import { NetworkDeleted } from '../errors.ts';
import { findDeletedPeer, saveOutcome } from '../store/deletions.ts';
import type { Context } from './context.ts';

/** A host's header: `follow` to take its tunnel down after a deletion, `applied` afterwards. */
export type DeletionRequest = 'follow' | 'applied';

/**
 * Refuses the token of a deleted network's peer with a statement of the deletion, for a host that
 * then takes its tunnel down, and records that host's state. Does nothing for other tokens and for
 * hosts of earlier versions: the caller refuses them as usual. @throws NetworkDeleted
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
  // Updates the shown time of the last request until the host confirms.
  if (outcome !== peer.outcome || outcome !== 'applied') {
    // A database on a full disk can still be read.
    const at = await readTime(db);
    await saveOutcome(db, peer.id, outcome, at.toISOString()).catch(() => undefined);
  }
  if (request !== null) throw new NetworkDeleted(peer.network_id, peer.nonce);
}
