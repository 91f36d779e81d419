import type { PathState } from '../../contract/health.ts';

/** A host that may be asked to probe others. */
export interface WitnessCandidate {
  readonly id: number;
  /** How it reaches other peers, from its own report. */
  readonly paths: ReadonlyMap<number, PathState>;
}

/** Hosts that are asked about one peer: any of them may be cut off from it itself. */
const mostWitnesses = 3;

/** How well a path suits a probe. Through a relay, or on a path that never worked, silence proves nothing. */
const ranks: Readonly<Record<PathState, number | null>> = { direct: 0, down: 1, stale: 1, never: null, relayed: null };
const rankWithoutPath = 2;

/**
 * Chooses the hosts that probe each of these peers: first those that reach it directly. Peers of one network share the work.
 *
 * @param candidates hosts whose connection to the control plane works
 * @param mostPeers for one host
 * @returns the peers to probe, by host
 */
export function chooseWitnesses(
  peers: readonly number[],
  candidates: readonly WitnessCandidate[],
  mostPeers: number,
): ReadonlyMap<number, readonly number[]> {
  const chosen = new Map<number, number[]>();
  const loadOf = (id: number) => chosen.get(id)?.length ?? 0;
  for (const peer of peers) {
    const suited = candidates.flatMap(({ id, paths }) => {
      const path = paths.get(peer);
      const rank = path === undefined ? rankWithoutPath : ranks[path];
      return id === peer || rank === null || loadOf(id) >= mostPeers ? [] : [{ id, rank, load: loadOf(id) }];
    });
    const best = suited.toSorted((one, other) => one.rank - other.rank || one.load - other.load || one.id - other.id);
    for (const { id } of best.slice(0, mostWitnesses)) chosen.set(id, [...(chosen.get(id) ?? []), peer]);
  }
  return chosen;
}
