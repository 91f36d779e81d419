import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import { isFresh } from './peer-health.ts';

/** A peer's endpoints in a live session, each with its first time. The last endpoint is in use. */
export type EndpointHistory = ReadonlyMap<PublicKey, readonly SeenEndpoint[]>;

interface SeenEndpoint {
  readonly endpoint: string;
  /** Seconds of a monotonic clock. */
  readonly at: number;
}

/** Seconds for which a change counts. */
const windowSeconds = 600;
/** Roaming hosts seldom change back, and a router with two uplinks keeps a flow on one uplink. */
const leastChanges = 4;

/**
 * Adds an observation. An endpoint without a fresh handshake does not count: it may come from the
 * map. `now` is in seconds since the epoch, `at` in seconds of a monotonic clock.
 */
export function trackEndpoints(
  known: EndpointHistory,
  peers: readonly ActualPeer[],
  now: number,
  at: number,
): EndpointHistory {
  return new Map(
    peers.flatMap(({ publicKey, endpoint, latestHandshake }) => {
      const before = (known.get(publicKey) ?? []).filter((each, index, all) => {
        return index === all.length - 1 || at - each.at < windowSeconds;
      });
      const isCounted = endpoint !== null && latestHandshake !== null && isFresh(latestHandshake, now);
      const name = isCounted ? formatEndpoint(endpoint) : before.at(-1)?.endpoint;
      if (name === undefined) return [];
      const isSame = before.at(-1)?.endpoint === name;
      return [[publicKey, isSame ? before : [...before, { endpoint: name, at }]] as const];
    }),
  );
}

/** Returns peers whose packets alternate between two endpoints: two hosts may share an identity. */
export function findAlternating(history: EndpointHistory, at: number): ReadonlyMap<PublicKey, readonly string[]> {
  return new Map(
    [...history].flatMap(([publicKey, history]) => {
      const changes = history.slice(1).filter((each) => at - each.at < windowSeconds);
      const last = changes.slice(-leastChanges);
      const endpoints = [...new Set(last.map(({ endpoint }) => endpoint))].sort();
      return last.length === leastChanges && endpoints.length === 2 ? [[publicKey, endpoints] as const] : [];
    }),
  );
}
