import { keepLabels } from '../core/hosts-label.ts';
import type { PublicKey } from '../core/keys.ts';
import { comparePeerIds, type Failure, type NetworkMap } from '../core/model.ts';
import { identifyMap } from '../core/newer-map.ts';
import { findOwnPeer, ownKeys } from '../core/own-peer.ts';
import type { PathMtu } from '../core/path-mtu.ts';
import { completePins, holdPins } from '../core/pins.ts';
import { type Resolved, sameResolved } from '../core/resolved.ts';
import type { Joined } from '../store/state.ts';
import { holderOf } from './pins.ts';
import { namesOf } from './resolve.ts';

/** What is known of a network and is not on disk yet; null where that is nothing. */
export interface News {
  /** As the service told it, whatever this host makes of it. */
  readonly map: NetworkMap | null;
  /** Whether the service sent the map twice, as is required of one that no longer lists most peers. */
  readonly isSaidTwice?: boolean;
  /** The public key of this host when the map was asked for. */
  readonly askedAs?: PublicKey | null;
  readonly resolved: Resolved | null;
  /** The peers to avoid. */
  readonly failed?: readonly Failure[] | null;
  /** What was measured of paths; null for no limit, undefined for nothing new. */
  readonly pathMtu?: PathMtu | null | undefined;
}

export const noNews: News = { map: null, resolved: null };

/** The state with the news in it; `state` itself where they tell nothing new, or only what was refused before. */
export function withNews(state: Joined, { map, askedAs = null, resolved, failed = null, pathMtu }: News): Joined {
  const listed = map === null || isOutdated(map, state, askedAs) ? state : withMap(state, map);
  const mapped = withPathMtu(withFailures(listed, failed), pathMtu);
  if (resolved === null) return mapped;
  const names = new Set(namesOf(mapped));
  const told = Object.entries({ ...mapped.resolved, ...resolved }).filter(([name]) => names.has(name));
  const merged = Object.fromEntries(told);
  return sameResolved(merged, mapped.resolved) ? mapped : { ...mapped, resolved: merged };
}

/** True of a map that was told before this host changed its key: it would not list it any more. */
function isOutdated(map: NetworkMap, state: Joined, askedAs: PublicKey | null): boolean {
  return askedAs !== null && !ownKeys(state).includes(askedAs) && findOwnPeer(map, state) === undefined;
}

/** A peer that the map does not list any more is forgotten. */
function withFailures(state: Joined, told: readonly Failure[] | null): Joined {
  const candidates = told ?? state.failed;
  if (candidates.length === 0 && state.failed.length === 0) return state;
  const listed = new Set(state.membership.map.peers.map((peer) => peer.id));
  const failed = candidates
    .filter(({ peer }) => listed.has(peer))
    .toSorted((one, other) => comparePeerIds(one.peer, other.peer));
  return JSON.stringify(failed) === JSON.stringify(state.failed) ? state : { ...state, failed };
}

function withPathMtu(state: Joined, pathMtu: News['pathMtu']): Joined {
  if (pathMtu === undefined || JSON.stringify(pathMtu) === JSON.stringify(state.pathMtu)) return state;
  return { ...state, pathMtu };
}

function withMap(state: Joined, told: NetworkMap): Joined {
  const { membership } = state;
  const { map: known } = membership;
  if (told.revision !== null && told.revision === known.revision) return state;
  const holder = holderOf(state);
  const { map, pins } = holdPins(told, completePins({ map: known, pins: state.pins }, holder), holder);
  const name = identifyMap(map);
  if (name === state.refused) return state;
  if (name !== identifyMap(known)) {
    const labels = state.options.hosts ? keepLabels(state.labels, { known, listed: told, used: map }) : [];
    return { ...state, membership: { ...membership, map }, pins, labels, refused: null };
  }
  return pins === state.pins ? state : { ...state, pins };
}
