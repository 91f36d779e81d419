import { comparePeerIds, type Failure, type NetworkMap } from '../core/model.ts';
import { identifyMap } from '../core/newer-map.ts';
import { type Resolved, sameResolved } from '../core/resolved.ts';
import type { Joined } from '../store/state.ts';
import { namesOf } from './resolve.ts';

/** What is known of a network and is not on disk yet; null where that is nothing. */
export interface News {
  readonly map: NetworkMap | null;
  readonly resolved: Resolved | null;
  /** The peers to avoid. */
  readonly failed?: readonly Failure[] | null;
}

export const noNews: News = { map: null, resolved: null };

/** The state with the news in it; `state` itself where they tell nothing new, or only what was refused before. */
export function withNews(state: Joined, { map, resolved, failed = null }: News): Joined {
  const mapped = withFailures(map === null ? state : withMap(state, map), failed);
  if (resolved === null) return mapped;
  const names = new Set(namesOf(mapped));
  const told = Object.entries({ ...mapped.resolved, ...resolved }).filter(([name]) => names.has(name));
  const merged = Object.fromEntries(told);
  return sameResolved(merged, mapped.resolved) ? mapped : { ...mapped, resolved: merged };
}

/** A peer that the map does not list any more is forgotten. */
function withFailures(state: Joined, told: readonly Failure[] | null): Joined {
  const listed = new Set(state.membership.map.peers.map((peer) => peer.id));
  const failed = (told ?? state.failed)
    .filter(({ peer }) => listed.has(peer))
    .toSorted((one, other) => comparePeerIds(one.peer, other.peer));
  return JSON.stringify(failed) === JSON.stringify(state.failed) ? state : { ...state, failed };
}

function withMap(state: Joined, map: NetworkMap): Joined {
  const name = identifyMap(map);
  if (name === identifyMap(state.membership.map) || name === state.refused) return state;
  return { ...state, membership: { ...state.membership, map }, refused: null };
}
