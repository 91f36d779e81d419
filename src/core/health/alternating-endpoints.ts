import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import { isFresh } from './peer-health.ts';

/** The endpoints that peers with a living session had, each with the time when it took the place of another one; the last one is in use. */
export type EndpointHistory = ReadonlyMap<PublicKey, readonly SeenEndpoint[]>;

interface SeenEndpoint {
  readonly endpoint: string;
  /** Seconds of a clock that is never set. */
  readonly at: number;
}

/** Seconds that a change counts. */
const windowSeconds = 600;
/** Changes between two endpoints. A host that roams has one, and few come back; a router with two uplinks keeps a flow on one. */
const leastChanges = 4;

/**
 * Adds an observation. An endpoint without a fresh handshake does not count: it may be the one of the map, where no host answers.
 *
 * @param now seconds since the epoch
 * @param at seconds of a clock that is never set
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

/** The peers whose packets come from two endpoints in turn, with these: two hosts may have the identity of the peer. */
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
