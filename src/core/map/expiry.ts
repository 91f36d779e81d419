import type { NetworkMap, Peer, PeerId } from './model.ts';
import { findOwnPeer, type OwnHost } from './own-peer.ts';

const dayMs = 86_400_000;
/** The number of days before its end from which a host warns. */
const warnedDays = 7;
/** The same for a host that a login keeps, as a part of the time that a login gives it. */
const warnedPart = 1 / 10;
const hourMs = 3_600_000;

/** A host's removal from its network by expiry, in the past or soon. */
export interface Expiry {
  readonly isOver: boolean;
  /** ISO 8601. */
  readonly at: string;
  /** Days until then, rounded up. */
  readonly days: number;
  /** True if a login of its user moves it. */
  readonly isMovedByLogin: boolean;
}

type JoinedHost = OwnHost & { readonly membership: { readonly map: NetworkMap; readonly peer: Pick<Peer, 'id'> } };

/** Returns when this host expires by the newest map, in milliseconds since 1970, or undefined. */
export function findExpiry(host: JoinedHost): number | undefined {
  return findOwnPeer(host.membership.map, host)?.expiresAt;
}

/** Warns that this host leaves its network soon, or has left it; else null. */
export function findExpiryWarning(host: JoinedHost, now: Date): Expiry | null {
  const { expiresAt, reauthHours = 0 } = findOwnPeer(host.membership.map, host) ?? {};
  if (expiresAt === undefined) return null;
  const left = expiresAt - now.getTime();
  const isMovedByLogin = reauthHours > 0;
  if (left > (isMovedByLogin ? reauthHours * hourMs * warnedPart : warnedDays * dayMs)) return null;
  return { isOver: left <= 0, at: new Date(expiresAt).toISOString(), days: Math.ceil(left / dayMs), isMovedByLogin };
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
