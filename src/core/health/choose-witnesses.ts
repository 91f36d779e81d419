import type { PathState } from '../../contract/health.ts';

/** A host that may be asked to probe others. */
export interface WitnessCandidate {
  /** Counts up: a host with a lower one enrolled earlier. */
  readonly id: number;
  /** How it reaches other peers, from its own report. */
  readonly paths: ReadonlyMap<number, PathState>;
}

/** A peer to probe. */
export interface LostPeer {
  readonly id: number;
  /** How it reached other peers, from its own last report. */
  readonly paths: ReadonlyMap<number, PathState>;
}

/** How well a path suits a probe. Through a relay, or on a path that never worked, silence proves nothing. */
const ranks: Readonly<Record<PathState, number | null>> = { direct: 0, down: 1, stale: 1, never: null, relayed: null };
const rankWithoutPath = 2;

interface Suited {
  readonly id: number;
  readonly rank: number;
  readonly isMutual: boolean;
  readonly load: number;
}

/** Takes one of the hosts that are left, which is at least one. */
type Seat = (suited: readonly Suited[], random: (below: number) => number) => Suited | undefined;

/** The host with the best path by its own report, and by that of the peer. A host may lie, so it is one seat of three. */
const best: Seat = (suited) =>
  suited.toSorted(
    (one, other) =>
      one.rank - other.rank ||
      Number(other.isMutual) - Number(one.isMutual) ||
      one.load - other.load ||
      one.id - other.id,
  )[0];

/**
 * The host that enrolled first, of those that report a path to the peer: an attacker that enrols many hosts gets no such seat. The better
 * path does not count, because an attacker can state or make one.
 */
const oldest: Seat = (suited) =>
  suited.toSorted(
    (one, other) => Number(one.rank === rankWithoutPath) - Number(other.rank === rankWithoutPath) || one.id - other.id,
  )[0];

/** Any host: so those that enrolled first do not decide alone either. */
const any: Seat = (suited, random) => suited[random(suited.length)];

/** Several hosts are asked about one peer: any of them may be cut off from it itself. */
const seats: readonly Seat[] = [best, oldest, any];

/**
 * Chooses three hosts that probe each of these peers: by its own report, by its enrolment, and at random. Peers of one network share the
 * work.
 *
 * @param candidates hosts whose connection to the control plane works
 * @param mostPeers for one host
 * @param random an integer from 0 up to, and without, its argument
 * @returns the peers to probe, by host
 */
export function chooseWitnesses(
  peers: readonly LostPeer[],
  candidates: readonly WitnessCandidate[],
  mostPeers: number,
  random: (below: number) => number,
): ReadonlyMap<number, readonly number[]> {
  const chosen = new Map<number, number[]>();
  const loadOf = (id: number) => chosen.get(id)?.length ?? 0;
  for (const peer of peers) {
    const suited = candidates.flatMap(({ id, paths }): Suited[] => {
      const path = paths.get(peer.id);
      const rank = path === undefined ? rankWithoutPath : ranks[path];
      const load = loadOf(id);
      if (id === peer.id || rank === null || load >= mostPeers) return [];
      return [{ id, rank, isMutual: peer.paths.get(id) === 'direct', load }];
    });
    let left: readonly Suited[] = suited;
    for (const seat of seats) {
      const taken = left.length > 0 ? seat(left, random) : undefined;
      if (taken === undefined) break;
      left = left.filter((each) => each !== taken);
      chosen.set(taken.id, [...(chosen.get(taken.id) ?? []), peer.id]);
    }
  }
  return chosen;
}
