import type { PathState } from '../../../contract/health.ts';

/** A host that can be requested to probe others. */
export interface WitnessCandidate {
  /** Ids ascend: a lower id enrolled earlier. */
  readonly id: number;
  /** How it reaches other peers, from its own report. */
  readonly paths: ReadonlyMap<number, PathState>;
}

export interface LostPeer {
  readonly id: number;
  /** How it reached other peers, from its own last report. */
  readonly paths: ReadonlyMap<number, PathState>;
}

/** Rank for a probe; 0 is best. Silence on a relayed or never working path proves nothing. */
const ranks: Readonly<Record<PathState, number | null>> = { direct: 0, down: 1, stale: 1, never: null, relayed: null };
const rankWithoutPath = 2;

interface Suited {
  readonly id: number;
  readonly rank: number;
  readonly isMutual: boolean;
  readonly load: number;
}

/** Chooses one of the remaining hosts; at least one remains. */
type Seat = (suited: readonly Suited[], random: (below: number) => number) => Suited | undefined;

/** The best path by its own report and the peer's. Hosts may lie, so this is one seat of three. */
const best: Seat = (suited) =>
  suited.toSorted(
    (one, other) =>
      one.rank - other.rank ||
      Number(other.isMutual) - Number(one.isMutual) ||
      one.load - other.load ||
      one.id - other.id,
  )[0];

/**
 * The earliest enrolled host with a path to the peer: an attacker that enrols many hosts gets no
 * such seat. The quality of the path does not count, as attackers can report or create good paths.
 */
const oldest: Seat = (suited) =>
  suited.toSorted(
    (one, other) => Number(one.rank === rankWithoutPath) - Number(other.rank === rankWithoutPath) || one.id - other.id,
  )[0];

/** A random host, so that the earliest enrolled hosts do not decide alone either. */
const any: Seat = (suited, random) => suited[random(suited.length)];

/** Several hosts probe one peer, because each of them may itself be cut off from it. */
const seats: readonly Seat[] = [best, oldest, any];

/**
 * Chooses three hosts to probe each of these peers: by its report, by its enrolment, and at random.
 * The peers of one network share the work.
 *
 * @param candidates hosts whose connection to the control plane works
 * @param mostPeers the limit for one host
 * @param random returns an integer from 0 up to, but not including, its argument
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
