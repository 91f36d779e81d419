import type { Peer } from '../../../contract/peer.ts';
import { comparedKeyOf, fingerprintOf } from '../../../core/crypto/fingerprint.ts';
import { capacityOf } from '../../domain/address-allocation.ts';
import type { Caller } from '../../domain/caller.ts';
import { Conflict, Forbidden, NotFound } from '../../errors.ts';
import { toPeer } from '../../push/to-contract.ts';
import { lockOrganizationOf, readNetwork, type StoredNetwork } from '../../store/networks.ts';
import { countWaiting } from '../../store/peers/peer-lists.ts';
import * as store from '../../store/peers/peers.ts';
import type { Db } from '../../store/tables.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { lockNetwork } from '../networks.ts';
import { requireAuthor } from '../require-author.ts';
import { isExpired } from '../suspension.ts';
import { peerEvent, withRevision } from '../with-revision.ts';

/** The most peers of a network that wait: a leaked key must not fill its range. */
const mostWaiting = 100;
/** The part of the range that they may take. */
const partOfRange = 1 / 4;

/** @throws Forbidden if too many peers wait; the enrolment takes no use of its key */
export async function requireRoomToWait(db: Db, { id, name, range }: StoredNetwork): Promise<void> {
  const most = Math.max(1, Math.min(mostWaiting, Math.floor(capacityOf(range) * partOfRange)));
  if ((await countWaiting(db, id)) < most) return;
  throw new Forbidden(
    `network ${name} (${id}) takes no more peers that wait for approval, of which it has ${most}; an admin approves them with "cpn peer approve", or removes them with "cpn peer remove"`,
  );
}

/** Brings a waiting peer into the map. Another peer stays as it is, so a repeated call is safe. */
export async function approvePeer(context: Context, caller: Caller, networkId: number, id: number): Promise<Peer> {
  const approved = await withRevision(context, async (transaction, revise, append) => {
    const network = await lockNetwork(transaction, caller, networkId);
    const author = await requireAuthor(context, transaction, caller);
    const peer = await store.findPeer(transaction, networkId, id);
    if (!peer) throw new NotFound('peer');
    if (!store.isWaiting(peer)) return toPeer(network, peer);
    const now = context.now();
    if (isExpired(peer, now)) {
      const remedy =
        peer.reauth_hours > 0 ? 'its user logs in' : 'give it a later end with "cpn peer update --expires"';
      throw new Conflict(`peer ${id} (${peer.name}) expired on ${peer.expires_at}; ${remedy}, and you approve it then`);
    }
    const recordChange = await revise(networkId);
    const { name, address, public_key, identity_key, peer_type } = peer;
    const updated = await store.updatePeer(transaction, networkId, id, {
      awaiting_approval: null,
      suspended_at: null,
      // It served nothing while it waited.
      ...(peer_type === 'connector' && { serving_since: await store.nextServingSince(transaction, networkId, now) }),
    });
    await recordChange(id);
    await record(transaction, author, {
      action: 'peer.approve',
      target: { kind: 'peer', id, name },
      details: { network: networkId, address, public_key, peer_type, ...(identity_key && { identity_key }) },
    });
    append(networkId, peerEvent('peer.enrolled', updated, { reason: 'approved' }));
    return toPeer(network, updated);
  });
  if (approved.expires_at !== undefined) context.rescheduleExpiry();
  return approved;
}

/** What the event about a waiting peer states, for a comparison with the host's own statement. */
export function describeWaiting(peer: store.StoredPeer) {
  const { address, peer_type, identity_key } = peer;
  const fingerprint = fingerprintOf(comparedKeyOf(peer));
  return { address, peer_type, fingerprint_of: identity_key === null ? 'public_key' : 'identity_key', fingerprint };
}

/** The locked network: its approval, addresses and waiting peers stay as they are. */
export async function lockForEnrollment(db: Db, id: number): Promise<StoredNetwork> {
  await lockOrganizationOf(db, id);
  return readNetwork(db, id);
}
