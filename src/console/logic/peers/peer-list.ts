import type { PathState, PeerHealth, PeerState } from '../../../contract/health.ts';
import type { Peer, PeerType } from '../../../contract/peer.ts';
import type { Query } from '../page/route.ts';
import { foldText, peerTypes, searchPeers } from './peer-text.ts';

/** A peer's state in the list. Peers that no map lists have no verdict. */
export type ListedState = PeerState | 'waiting' | 'suspended' | 'expired';

export const listedStates: readonly ListedState[] = ['online', 'offline', 'unknown', 'waiting', 'suspended', 'expired'];

export interface PeerRow {
  readonly peer: Peer;
  readonly state: ListedState;
  readonly health: PeerHealth | undefined;
  readonly path: PathSummary | null;
}

/** How hosts reach a peer: the most frequently reported state, with its count and the total. */
export interface PathSummary {
  readonly state: PathState;
  readonly count: number;
  readonly of: number;
}

const sortNames = ['name', 'state', 'last_seen', 'type', 'address', 'path', 'version'] as const;
export type SortName = (typeof sortNames)[number];

export interface PeerListView {
  readonly search: string;
  readonly state: ListedState | '';
  readonly type: PeerType | '';
  readonly sort: SortName;
  readonly isDescending: boolean;
}

/** Parses the view in the URL. Invalid values become the default. */
export function readView({ q = '', state = '', type = '', sort = '' }: Query): PeerListView {
  const name = sort.replace(/^-/, '');
  return {
    search: q,
    state: listedStates.find((each) => each === state) ?? '',
    type: (Object.keys(peerTypes) as PeerType[]).find((each) => each === type) ?? '',
    sort: sortNames.find((each) => each === name) ?? 'name',
    isDescending: sort.startsWith('-'),
  };
}

/** The view for the URL, without default values. */
export function writeView({ search, state, type, sort, isDescending }: PeerListView): Query {
  const order = `${isDescending ? '-' : ''}${sort}`;
  return { q: search, state, type, sort: order === 'name' ? '' : order };
}

export function makeRows(
  peers: readonly Peer[],
  health: ReadonlyMap<number, PeerHealth>,
  paths: ReadonlyMap<number, PathSummary>,
  now: number,
): readonly PeerRow[] {
  return peers.map((peer) => {
    const own = health.get(peer.id);
    return { peer, state: readState(peer, own, now), health: own, path: paths.get(peer.id) ?? null };
  });
}

function readState(peer: Peer, health: PeerHealth | undefined, now: number): ListedState {
  const { awaiting_approval, suspended_at, expires_at } = peer;
  if (awaiting_approval !== undefined) return 'waiting';
  if (suspended_at !== undefined) return 'suspended';
  if (expires_at !== undefined && Date.parse(expires_at) <= now) return 'expired';
  return health?.state ?? 'unknown';
}

const order: readonly PathState[] = ['direct', 'relayed', 'stale', 'never', 'down'];

export function summarizePaths(health: Iterable<PeerHealth>): ReadonlyMap<number, PathSummary> {
  const counts = new Map<number, Map<PathState, number>>();
  for (const { state, paths } of health) {
    if (state === 'offline') continue;
    for (const { peer, path } of paths) {
      const known = counts.get(peer) ?? new Map<PathState, number>();
      known.set(path, (known.get(path) ?? 0) + 1);
      counts.set(peer, known);
    }
  }
  return new Map(
    [...counts].map(([peer, known]) => {
      const of = [...known.values()].reduce((sum, count) => sum + count, 0);
      const [[state, count] = ['never', 0] as const] = [...known].toSorted(
        ([one, some], [other, more]) => more - some || order.indexOf(one) - order.indexOf(other),
      );
      return [peer, { state, count, of }];
    }),
  );
}

export function viewPeers(rows: readonly PeerRow[], view: PeerListView): readonly PeerRow[] {
  const found = new Set(
    searchPeers(
      rows.map(({ peer }) => peer),
      view.search,
    ),
  );
  const shown = rows.filter(
    ({ peer, state }) =>
      found.has(peer) &&
      (view.state === '' || state === view.state) &&
      (view.type === '' || peer.peer_type === view.type),
  );
  const compare = comparisons[view.sort];
  const sorted = shown.toSorted((one, other) => compare(one, other) || one.peer.id - other.peer.id);
  return view.isDescending ? sorted.toReversed() : sorted;
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });
const byText = (textOf: (row: PeerRow) => string) => (one: PeerRow, other: PeerRow) =>
  collator.compare(textOf(one), textOf(other));

const comparisons: Readonly<Record<SortName, (one: PeerRow, other: PeerRow) => number>> = {
  name: byText(({ peer }) => foldText(peer.name)),
  // Peers that need attention first.
  state: (one, other) => attention.indexOf(one.state) - attention.indexOf(other.state),
  // The most recently seen peer first, and peers that were never seen at the end.
  last_seen: (one, other) => (other.health?.last_seen ?? '').localeCompare(one.health?.last_seen ?? ''),
  type: byText(({ peer }) => peerTypes[peer.peer_type]),
  address: (one, other) => toNumber(one.peer.address) - toNumber(other.peer.address),
  path: (one, other) => rankPath(one.path) - rankPath(other.path),
  version: byText(({ health }) => health?.version ?? ''),
};

const attention: readonly ListedState[] = ['waiting', 'offline', 'unknown', 'online', 'suspended', 'expired'];

const toNumber = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);

/** The worst path first. */
function rankPath(path: PathSummary | null): number {
  if (path === null) return order.length;
  const share = path.count / path.of / 2;
  const isGood = path.state === 'direct' || path.state === 'relayed';
  return order.length - 1 - order.indexOf(path.state) + (isGood ? share - 1 : -share);
}
