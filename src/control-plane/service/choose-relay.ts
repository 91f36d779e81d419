import { compareConnectors, type RankedConnector } from '../../core/map/connector-rank.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { StoredHealth } from '../store/health.ts';
import type { StoredPeer } from '../store/peers/peers.ts';

/** A connector that is able to relay. */
export interface RelayCandidate extends RankedConnector {
  readonly id: number;
  /** The state in its last event; null before the first. */
  readonly announced: StoredHealth['announced'];
}

/** Why a peer cannot be the relay of a network with this range; null if it can. */
export function findObstacle(
  range: Prefix,
  {
    peer_type,
    endpoint,
    withdrawn,
    suspended_at,
    expired,
  }: Pick<StoredPeer, 'peer_type' | 'endpoint' | 'withdrawn' | 'suspended_at' | 'expired'>,
): string | null {
  if (suspended_at !== null) return 'is suspended';
  if (expired !== 0) return 'has expired';
  if (peer_type !== 'connector') return 'is not a connector';
  if (endpoint === null) return 'has no endpoint';
  return (JSON.parse(withdrawn) as Prefix[]).includes(range) ? 'is out of service' : null;
}

/**
 * Chooses the relay of a network; null without a candidate. The current one stays while it is a
 * candidate, even if another ranks higher, unless it is offline and another is online. The states
 * are those of the last events: a restart of the control plane and a short outage replace no relay.
 */
export function chooseRelay(current: number | null, candidates: readonly RelayCandidate[]): number | null {
  const [best] = candidates.toSorted(
    (one, other) =>
      stateRanks[one.announced ?? 'unknown'] - stateRanks[other.announced ?? 'unknown'] ||
      compareConnectors(one, other),
  );
  const kept = candidates.find(({ id }) => id === current);
  const isDead = kept?.announced === 'offline' && best?.announced === 'online';
  return (kept && !isDead ? kept : best)?.id ?? null;
}

const stateRanks = { online: 0, unknown: 1, offline: 2 } as const;
