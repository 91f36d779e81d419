import type { Health, PathHealth, PathState, PeerHealth } from '../../../contract/health.ts';
import type { Peer, PeerType } from '../../../contract/peer.ts';

/** How one peer reaches another. Unknown without a reported path, or if the peer is offline. */
export type CellState = PathState | 'unknown';

export const cellStates: readonly CellState[] = ['direct', 'relayed', 'stale', 'down', 'never', 'unknown'];

/** Peer types in the order of the matrix. */
export const groupOrder: readonly PeerType[] = ['connector', 'origin', 'admin_device'];

export type Counts = Readonly<Record<CellState, number>>;

export interface Reach {
  /** Peers that report paths, and peers with a reported path to them, each by type and name. */
  readonly rows: readonly Peer[];
  readonly columns: readonly Peer[];
  /** The peers in neither list. */
  readonly silent: readonly Peer[];
  readonly byId: ReadonlyMap<number, Peer>;
  /** Without the paths and routes of an offline host, which are no longer current. */
  readonly health: ReadonlyMap<number, PeerHealth>;
  /** The number of pairs by state, keyed by both types, as in `origin connector`. */
  readonly groups: ReadonlyMap<string, Counts>;
  pathOf(from: number, to: number): PathHealth | undefined;
  /** The path in the last report of an offline host. */
  lastPathOf(from: number, to: number): PathHealth | undefined;
}

const collator = new Intl.Collator('en', { numeric: true });
const noPaths: ReadonlyMap<number, PathHealth> = new Map();

/** Indexes the reports of hosts. Peers outside the network are left out. */
export function indexReach(peers: readonly Peer[], { peers: reports }: Health): Reach {
  const byId = new Map(peers.map((peer) => [peer.id, peer]));
  const health = new Map(
    reports.map((report) => [report.id, report.state === 'offline' ? { ...report, paths: [], routes: [] } : report]),
  );
  const offline = new Map(reports.filter(({ state }) => state === 'offline').map(({ id, paths }) => [id, paths]));
  const named = new Set<number>();
  const known = new Map<string, Record<PathState, number>>();
  const rows: Peer[] = [];
  for (const { id, paths } of reports) {
    const from = byId.get(id);
    if (from === undefined || paths.length === 0) continue;
    rows.push(from);
    for (const { peer, path } of paths) {
      const to = byId.get(peer);
      if (to === undefined) continue;
      named.add(peer);
      if (offline.has(id)) continue;
      const group = toGroup(from.peer_type, to.peer_type);
      const counts = known.get(group) ?? { direct: 0, relayed: 0, stale: 0, down: 0, never: 0 };
      counts[path] += 1;
      known.set(group, counts);
    }
  }
  const columns = [...named].flatMap((id) => byId.get(id) ?? []);
  const reporting = new Set(rows.map(({ id }) => id));
  // Lazily, because most cells of a large matrix are never visible.
  const paths = new Map<number, ReadonlyMap<number, PathHealth>>();
  const pathsOf = (from: number) => {
    const found = paths.get(from) ?? new Map(health.get(from)?.paths.map((path) => [path.peer, path]) ?? noPaths);
    paths.set(from, found);
    return found;
  };
  return {
    rows: rows.sort(comparePeers),
    columns: columns.sort(comparePeers),
    silent: peers.filter(({ id }) => !reporting.has(id) && !named.has(id)).sort(comparePeers),
    ...{ byId, health },
    groups: countUnknown(rows, columns, named, known),
    pathOf: (from, to) => pathsOf(from).get(to),
    lastPathOf: (from, to) => offline.get(from)?.find(({ peer }) => peer === to),
  };
}

export const toGroup = (from: PeerType, to: PeerType) => `${from} ${to}`;

export function stateOf(reach: Pick<Reach, 'pathOf'>, from: number, to: number): CellState {
  return reach.pathOf(from, to)?.path ?? 'unknown';
}

/** The order of the matrix: by type, then by name. */
export function comparePeers(one: Peer, other: Peer): number {
  const rank = ({ peer_type }: Peer) => groupOrder.indexOf(peer_type);
  return rank(one) - rank(other) || collator.compare(one.name, other.name) || one.id - other.id;
}

function countUnknown(
  rows: readonly Peer[],
  columns: readonly Peer[],
  named: ReadonlySet<number>,
  known: ReadonlyMap<string, Record<PathState, number>>,
): ReadonlyMap<string, Counts> {
  const ofType = (peers: readonly Peer[], type: PeerType) => peers.filter(({ peer_type }) => peer_type === type);
  return new Map(
    groupOrder.flatMap((from) => {
      const own = ofType(rows, from);
      return groupOrder.flatMap((to): [string, Counts][] => {
        const selves = from === to ? own.filter(({ id }) => named.has(id)).length : 0;
        const pairs = own.length * ofType(columns, to).length - selves;
        if (pairs <= 0) return [];
        const counts = known.get(toGroup(from, to)) ?? { direct: 0, relayed: 0, stale: 0, down: 0, never: 0 };
        const sum = Object.values(counts).reduce((total, count) => total + count, 0);
        return [[toGroup(from, to), { ...counts, unknown: pairs - sum }]];
      });
    }),
  );
}

export function sumCounts(groups: ReadonlyMap<string, Counts>): Counts {
  const sum = { direct: 0, relayed: 0, stale: 0, down: 0, never: 0, unknown: 0 };
  for (const counts of groups.values()) for (const state of cellStates) sum[state] += counts[state];
  return sum;
}

export interface PeerPair {
  readonly other: Peer;
  readonly from: PathHealth | undefined;
  readonly to: PathHealth | undefined;
  /** The last report of this peer, if it is offline. */
  readonly last: PathHealth | undefined;
}

const order: readonly (string | undefined)[] = ['down', 'never', 'stale', 'direct', 'relayed'];

/** The peers with a reported path to or from this peer. Peers that do not answer come first. */
export function listAround(reach: Reach, peer: number): readonly PeerPair[] {
  const pairs = [...reach.byId.values()].flatMap((other): PeerPair[] => {
    if (other.id === peer) return [];
    const [from, to] = [reach.pathOf(peer, other.id), reach.pathOf(other.id, peer)];
    const last = reach.lastPathOf(peer, other.id);
    return (from ?? to ?? last) === undefined ? [] : [{ other, from, to, last }];
  });
  const rank = ({ from, to }: PeerPair) =>
    Math.min(...[from, to].flatMap((path) => (path === undefined ? [] : order.indexOf(path.path))));
  return pairs.toSorted((one, other) => rank(one) - rank(other) || one.other.id - other.other.id);
}
