import type { Id, NetworkMap, Peer, PeerId } from './model.ts';
import { findOwnPeer, type OwnHost } from './own-peer.ts';

const dayMs = 86_400_000;
/** The number of days before its end from which a host warns. */
const warnedDays = 7;

/** A host's removal from its network by expiry, now or soon. */
export interface Expiry {
  readonly isOver: boolean;
  readonly found: string;
  readonly remedy: string;
}

/**
 * Describes when this host leaves its network, if that is soon or past; else null.
 *
 * @param expiresAt milliseconds since 1970; undefined for never
 */
export function describeExpiry(
  expiresAt: number | undefined,
  now: Date,
  own: { readonly network: Id; readonly peer: PeerId },
): Expiry | null {
  if (expiresAt === undefined) return null;
  const left = expiresAt - now.getTime();
  if (left > warnedDays * dayMs) return null;
  const at = new Date(expiresAt).toISOString();
  const remedy = `an admin sets a later end: cpn peer update ${own.network} ${own.peer} --expires 90d`;
  if (left <= 0) return { isOver: true, found: `this host expired on ${at}: no other host talks to it`, remedy };
  const days = Math.ceil(left / dayMs);
  const when = days === 1 ? 'within a day' : `in ${days} days`;
  return { isOver: false, found: `this host expires ${when}, on ${at}: no other host talks to it then`, remedy };
}

type JoinedHost = OwnHost & { readonly membership: { readonly map: NetworkMap; readonly peer: Pick<Peer, 'id'> } };

/**
 * Returns when this host expires by the newest map, in milliseconds since 1970; undefined if it
 * does not.
 */
export function findExpiry(host: JoinedHost): number | undefined {
  return findOwnPeer(host.membership.map, host)?.expiresAt;
}

/** Warns that this host leaves its network soon, or has left it; else null. */
export function findExpiryWarning(host: JoinedHost, now: Date): Expiry | null {
  const { map, peer } = host.membership;
  const network = typeof map.id === 'number' ? map.id : 'NETWORK';
  return describeExpiry(findExpiry(host), now, { network, peer: peer.id });
}

/** Returns the other peers of a map that have expired and that the service has not removed yet. */
export function findExpired({ membership: { map, peer } }: JoinedHost, now: number): readonly PeerId[] {
  return map.peers.flatMap(({ id, expiresAt }) =>
    id !== peer.id && expiresAt !== undefined && expiresAt <= now ? id : [],
  );
}

/** True if anything in a map has a deadline by the clock of the service. */
export function hasDeadlines({ maxAge, peers }: NetworkMap): boolean {
  return maxAge !== undefined || peers.some(({ expiresAt }) => expiresAt !== undefined);
}
