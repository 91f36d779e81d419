import type { Peer, PeerType } from '../../../contract/peer.ts';
import { searchPeers } from '../peers/peer-text.ts';
import { type CellState, type Reach, stateOf } from './reach.ts';

export interface MatrixFilter {
  /** Words to find in the peer of a row or of a column. */
  readonly from: string;
  readonly to: string;
  /** Restricts to rows and columns with such a cell. */
  readonly state: CellState | null;
  readonly group: { readonly from: PeerType; readonly to: PeerType } | null;
}

export const noFilter: MatrixFilter = { from: '', to: '', state: null, group: null };

export const isFiltered = ({ from, to, state, group }: MatrixFilter) =>
  from.trim() !== '' || to.trim() !== '' || state !== null || group !== null;

export function filterMatrix(
  reach: Reach,
  { from, to, state, group }: MatrixFilter,
): { readonly rows: readonly Peer[]; readonly columns: readonly Peer[] } {
  const ofType = (peers: readonly Peer[], type: PeerType | undefined) =>
    type === undefined ? peers : peers.filter(({ peer_type }) => peer_type === type);
  const rows = searchPeers(ofType(reach.rows, group?.from), from);
  const columns = searchPeers(ofType(reach.columns, group?.to), to);
  if (state === null) return { rows, columns };
  if (state === 'unknown') {
    const isUnknown = (a: Peer, b: Peer) => a !== b && stateOf(reach, a.id, b.id) === 'unknown';
    return {
      rows: rows.filter((row) => columns.some((column) => isUnknown(row, column))),
      columns: columns.filter((column) => rows.some((row) => isUnknown(row, column))),
    };
  }
  const shown = new Set(columns.map(({ id }) => id));
  const found = new Set<number>();
  const matching = rows.filter(({ id }) => {
    const those = reach.health.get(id)?.paths.filter(({ peer, path }) => path === state && shown.has(peer)) ?? [];
    for (const { peer } of those) found.add(peer);
    return those.length > 0;
  });
  return { rows: matching, columns: columns.filter(({ id }) => found.has(id)) };
}
