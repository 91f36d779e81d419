import type { Id, NetworkMap, Peer, PeerId } from './model.ts';
import { findOwnPeer, type OwnHost } from './own-peer.ts';

const dayMs = 86_400_000;
/** How long before its end a host warns of it. */
const warnedDays = 7;

/** That a host is out of its network by now, or soon. */
export interface Expiry {
  readonly isOver: boolean;
  readonly found: string;
  readonly remedy: string;
}

/**
 * Says when this host leaves its network, where that is soon or past; null where it is not.
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

/** When this host expires, in milliseconds since 1970, by the newest map; undefined where it does not. */
export function findExpiry(host: JoinedHost): number | undefined {
  return findOwnPeer(host.membership.map, host)?.expiresAt;
}

/** That this host leaves its network soon, or has left it; null where neither is so. */
export function findExpiryWarning(host: JoinedHost, now: Date): Expiry | null {
  const { map, peer } = host.membership;
  const network = typeof map.id === 'number' ? map.id : 'NETWORK';
  return describeExpiry(findExpiry(host), now, { network, peer: peer.id });
}

/** The other peers of a map that have expired, while the service has not taken them out of it. */
export function findExpired({ membership: { map, peer } }: JoinedHost, now: number): readonly PeerId[] {
  return map.peers.flatMap(({ id, expiresAt }) =>
    id !== peer.id && expiresAt !== undefined && expiresAt <= now ? id : [],
  );
}

/** True where anything in a map has a deadline that counts by the clock of the service. */
export function hasDeadlines({ maxAge, peers }: NetworkMap): boolean {
  return maxAge !== undefined || peers.some(({ expiresAt }) => expiresAt !== undefined);
}
