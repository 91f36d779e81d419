import { compareConnectors, type RankedConnector } from '../../core/map/connector-rank.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { StoredHealth } from '../store/health.ts';
import type { StoredPeer } from '../store/peers/peers.ts';

/** A connector that is able to relay. */
export interface RelayCandidate extends RankedConnector {
  readonly id: number;
  /** The state in its last event; null before the first. */
  readonly announced: StoredHealth['announced'];
  /** False if its host does not enforce the rules of the network; true in an open one. */
  readonly keepsRules: boolean;
}

/** A host that enforces rules relays packets with their sources, so that they can be judged. */
export function keepsRules(isClosed: boolean, { enforces_rules }: Pick<StoredPeer, 'enforces_rules'>): boolean {
  return !isClosed || enforces_rules === 1;
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

/** How long a connector that was never online stays the relay: its daemon may start later. */
const patienceMs = 600_000;

/**
 * Chooses the relay of a network; null without a candidate. The current one stays while it is a
 * candidate, even if another ranks higher. It yields to one that is online if it is dead, or if the
 * other one keeps rules that it does not. The states are those of the last events: a restart of the
 * control plane and a short outage replace no relay.
 *
 * @param now the time in milliseconds since 1970, like `serving_since`
 */
export function chooseRelay(current: number | null, candidates: readonly RelayCandidate[], now: number): number | null {
  const [best] = candidates.toSorted(
    (one, other) =>
      stateRanks[one.announced ?? 'unknown'] - stateRanks[other.announced ?? 'unknown'] ||
      Number(other.keepsRules) - Number(one.keepsRules) ||
      compareConnectors(one, other),
  );
  const kept = candidates.find(({ id }) => id === current);
  const isWorse = kept !== undefined && (isDead(kept, now) || (best?.keepsRules === true && !kept.keepsRules));
  const gives = best?.announced === 'online' && isWorse;
  return (gives ? best : (kept ?? best))?.id ?? null;
}

/** A host with an enrolment key may never start a daemon: no event then states it offline. */
function isDead({ announced, serving_since }: RelayCandidate, now: number): boolean {
  const waitsSince = typeof serving_since === 'string' ? Date.parse(serving_since) : now;
  return announced === 'offline' || (announced === null && now - waitsSince > patienceMs);
}

const stateRanks = { online: 0, unknown: 1, offline: 2 } as const;
