import type { PathState } from '../../contract/health.ts';
import type { Id } from '../map/model.ts';

/** A host's report about other peers. */
interface ReportingHost {
  readonly state: 'online' | 'offline' | 'unknown';
  readonly paths: readonly { readonly peer: Id; readonly path: PathState }[];
}

/** The first of equally frequent states wins: hosts that exchange packets observe more. */
const observed = ['direct', 'relayed', 'down'] as const;
const unobserved = ['stale', 'never'] as const;

/** Returns how most online hosts reach each peer, by its id. Peers without reports are absent. */
export function findObservedPaths(reporters: readonly ReportingHost[]): ReadonlyMap<string, PathState> {
  const counts = new Map<string, Map<PathState, number>>();
  for (const { paths } of reporters.filter(({ state }) => state === 'online')) {
    for (const { peer, path } of paths) {
      const ofPeer = counts.get(`${peer}`) ?? new Map<PathState, number>();
      counts.set(`${peer}`, ofPeer.set(path, (ofPeer.get(path) ?? 0) + 1));
    }
  }
  return new Map(
    [...counts].flatMap(([peer, ofPeer]) => {
      const most = mostCommon(ofPeer, observed) ?? mostCommon(ofPeer, unobserved);
      return most === null ? [] : [[peer, most] as const];
    }),
  );
}

function mostCommon(counts: ReadonlyMap<PathState, number>, among: readonly PathState[]): PathState | null {
  const most = Math.max(...among.map((path) => counts.get(path) ?? 0));
  return most === 0 ? null : (among.find((path) => counts.get(path) === most) ?? null);
}
