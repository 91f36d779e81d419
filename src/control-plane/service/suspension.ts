import type { ChangePeer } from '../../contract/peer.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import type { ReadField } from '../domain/field-rules.ts';
import { Forbidden } from '../errors.ts';
import { isWaiting, type StoredPeer } from '../store/peers/peers.ts';

type Suspension = Pick<StoredPeer, 'suspended_at' | 'expires_at' | 'awaiting_approval' | 'reauth_hours'>;

/** True for a peer that is in no map. */
export function isUnlisted({ suspended_at, expired }: Pick<StoredPeer, 'suspended_at' | 'expired'>): boolean {
  return suspended_at !== null || expired !== 0;
}

export function isExpired({ expires_at }: Pick<StoredPeer, 'expires_at'>, now: Date): boolean {
  return expires_at !== null && expires_at <= now.toISOString();
}

/** @throws Forbidden for a suspended or expired peer, but not for one that waits for approval */
export function refuseUnlisted(peer: Suspension, now: Date): void {
  if (peer.suspended_at !== null && !isWaiting(peer)) {
    throw new Forbidden('this peer is suspended; an admin resumes it with "cpn peer resume"');
  }
  if (isExpired(peer, now)) {
    const remedy =
      peer.reauth_hours > 0
        ? 'it is back in its network once its user logs in to the control plane'
        : 'an admin resumes it with "cpn peer update --expires"';
    throw new Forbidden(`this peer expired on ${peer.expires_at}; ${remedy}`);
  }
}

/**
 * A peer's suspension and expiry after a change. Only a later expiry brings back an expired peer.
 */
export function readSuspension(
  read: ReadField,
  { suspended, expires_at }: ChangePeer,
  peer: Suspension & Pick<StoredPeer, 'expired'>,
  now: Date,
) {
  return {
    suspended_at: read(() => {
      if (suspended === undefined) return peer.suspended_at;
      if (suspended) return peer.suspended_at ?? now.toISOString();
      if (isWaiting(peer)) {
        const rule = 'does not approve a peer that waits for approval';
        throw new InvalidValue('suspended', suspended, rule, 'an owner or admin types "cpn peer approve"');
      }
      if (expires_at !== undefined || !isExpired(peer, now)) return null;
      throw new InvalidValue(
        'suspended',
        suspended,
        `does not bring the peer back: it expired on ${peer.expires_at}`,
        'give expires_at too, a later instant or null for never',
      );
    }),
    expires_at: read(() => {
      if (expires_at === undefined || expires_at === null) return expires_at === null ? null : peer.expires_at;
      const at = new Date(expires_at).toISOString();
      if (at > now.toISOString()) return at;
      throw new InvalidValue('expires_at', expires_at, 'is in the past', 'give a later instant, or suspend the peer');
    }),
    expired: expires_at === undefined ? peer.expired : 0,
    // Logins do not move what an admin set.
    reauth_hours: expires_at === undefined ? peer.reauth_hours : 0,
  };
}

/** The audit action of a change of a peer. */
export function changeAction(before: StoredPeer, after: StoredPeer): `peer.${'suspend' | 'resume' | 'update'}` {
  if (before.suspended_at === null && after.suspended_at !== null) return 'peer.suspend';
  return isUnlisted(before) && !isUnlisted(after) ? 'peer.resume' : 'peer.update';
}
